package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.HistoryEntry;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How a client loads: only the snapshots that refs name, and only what has changed. */
public class LoadTests extends RelayedTests {
  private static final Map<String, String> REFS = Map.of("snapshot-loading-mode", "refs");

  private List<Relay.Exchange> loads() {
    return relay.exchanges("GET", "/tables/t");
  }

  /** The snapshots that a client holds. Table.snapshots() would fetch the others. */
  private static List<?> held(Table table) throws Exception {
    Field snapshots = TableMetadata.class.getDeclaredField("snapshots");
    snapshots.setAccessible(true);
    return (List<?>) snapshots.get(((BaseTable) table).operations().current());
  }

  @Test
  void onlyReferencedSnapshotsAreLoaded() throws Exception {
    Table table = catalog.createTable(named("t"), SCHEMA);
    for (String name : List.of("a", "b", "c", "d", "e")) {
      table.newFastAppend().appendFile(file(name)).commit();
    }
    try (RESTCatalog lazy = open(REFS)) {
      relay.forget();
      Table loaded = lazy.loadTable(named("t"));
      assertThat(held(loaded)).hasSize(1);
      assertThat(loaded.currentSnapshot()).isEqualTo(table.currentSnapshot());
      assertThat(loaded.history())
          .as("the history is complete")
          .hasSize(5)
          .extracting(HistoryEntry::snapshotId)
          .containsExactlyElementsOf(
              table.history().stream().map(HistoryEntry::snapshotId).toList());
      assertThat(loads()).extracting(Relay.Exchange::query).containsExactly("snapshots=refs");

      assertThat(loaded.snapshots()).containsExactlyInAnyOrderElementsOf(table.snapshots());
      assertThat(loads())
          .extracting(Relay.Exchange::query)
          .containsExactly("snapshots=refs", "snapshots=all");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"1", "2", "3"})
  void branchesAreLoadedAndCommittedTo(String formatVersion) throws Exception {
    Table table =
        catalog.createTable(
            named("t"),
            SCHEMA,
            PartitionSpec.unpartitioned(),
            Map.of("format-version", formatVersion));
    table.newFastAppend().appendFile(file("a")).commit();
    table.manageSnapshots().createBranch("side", table.currentSnapshot().snapshotId()).commit();
    table.newFastAppend().appendFile(file("b")).toBranch("side").commit();
    table.newFastAppend().appendFile(file("c")).toBranch("side").commit();
    try (RESTCatalog lazy = open(REFS)) {
      Table loaded = lazy.loadTable(named("t"));
      assertThat(held(loaded)).hasSize(2);
      assertThat(loaded.history()).hasSize(1);
      assertThat(loaded.currentSnapshot()).isEqualTo(table.currentSnapshot());

      loaded.newAppend().appendFile(file("d")).toBranch("side").commit();
      loaded.newAppend().appendFile(file("e")).commit();
    }
    table.refresh();
    assertThat(table.snapshots()).as("a commit by a client that held two lost none").hasSize(5);
  }

  @Test
  void whatHasNotChangedIsNotSentAgain() {
    catalog.createTable(named("t"), SCHEMA);
    Table loaded = catalog.loadTable(named("t"));
    assertThat(loads()).singleElement().satisfies(e -> assertThat(e.status()).isEqualTo(200));
    String tag = loads().get(0).answered("ETag").orElseThrow();

    relay.forget();
    assertThat(metadataLocation(catalog.loadTable(named("t")))).isEqualTo(metadataLocation(loaded));
    assertThat(loads())
        .singleElement()
        .satisfies(
            e -> {
              assertThat(e.sent("If-None-Match")).hasValue(tag);
              assertThat(e.status()).isEqualTo(304);
              assertThat(e.answered("ETag")).hasValue(tag);
            });

    loaded.newAppend().appendFile(file("a")).commit();
    relay.forget();
    assertThat(catalog.loadTable(named("t")).snapshots()).hasSize(1);
    assertThat(loads()).singleElement().satisfies(e -> assertThat(e.status()).isEqualTo(200));
  }

  @Test
  void anotherClientsChangeIsSeen() throws Exception {
    catalog.createTable(named("t"), SCHEMA);
    catalog.loadTable(named("t"));
    try (RESTCatalog other = open(Map.of())) {
      other.loadTable(named("t")).updateProperties().set("owner", "ann").commit();
      assertThat(catalog.loadTable(named("t")).properties()).containsEntry("owner", "ann");

      other.dropTable(named("t"), false);
      assertThatThrownBy(() -> catalog.loadTable(named("t")))
          .isInstanceOf(NoSuchTableException.class);

      Table again = other.createTable(named("t"), SCHEMA);
      assertThat(catalog.loadTable(named("t")).uuid()).isEqualTo(again.uuid());
    }
  }

  @Test
  void writesAnswerWithTheTagOfALoad() {
    Table table = catalog.createTable(named("t"), SCHEMA);
    assertThat(tag("POST", "/tables")).isEqualTo(tagOfALoad());

    table.newFastAppend().appendFile(file("a")).commit();
    assertThat(tag("POST", "/tables/t")).isEqualTo(tagOfALoad());

    catalog.dropTable(named("t"), false);
    catalog.registerTable(named("t"), metadataLocation(table));
    assertThat(tag("POST", "/register")).isEqualTo(tagOfALoad());
  }

  @Test
  void eachRepresentationHasItsOwnTag() throws Exception {
    catalog.createTable(named("t"), SCHEMA).newFastAppend().appendFile(file("a")).commit();
    String all = tagOfALoad();
    try (RESTCatalog lazy = open(REFS)) {
      lazy.loadTable(named("t"));
    }
    assertThat(tag("GET", "/tables/t")).isNotEqualTo(all);
  }

  private String tagOfALoad() {
    catalog.loadTable(named("t"));
    return tag("GET", "/tables/t");
  }

  /** The tag of the last answer to such a request. */
  private String tag(String method, String pathEnd) {
    List<Relay.Exchange> sent = relay.exchanges(method, pathEnd);
    return sent.get(sent.size() - 1).answered("ETag").orElseThrow();
  }

  /**
   * The client looks for the table ns.t.snapshots first, and must be told that there is no such
   * table.
   */
  @Test
  void metadataTablesAreLoaded() {
    Table table = catalog.createTable(named("t"), SCHEMA);
    table.newFastAppend().appendFile(file("a")).commit();
    Namespace base = Namespace.of(namespace.level(0), "t");
    Table snapshots = catalog.loadTable(TableIdentifier.of(base, "snapshots"));
    assertThat(snapshots.schema().findField("committed_at")).isNotNull();
    assertThatThrownBy(() -> catalog.loadTable(TableIdentifier.of(base, "nonsense")))
        .isInstanceOf(NoSuchTableException.class);
  }
}
