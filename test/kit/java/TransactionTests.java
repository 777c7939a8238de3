package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateRequirement;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;

/**
 * Several changes in one request: transactions/commit, as RESTCatalog.commitTransaction sends it.
 */
public class TransactionTests extends RelayedTests {
  /** An entry that is put together by hand, for what the client's own builder cannot express. */
  private record Entry(
      TableIdentifier identifier,
      List<UpdateRequirement> requirements,
      List<MetadataUpdate> updates)
      implements TableCommit {}

  private static TableCommit commitOf(TableIdentifier identifier, Transaction transaction) {
    BaseTransaction base = (BaseTransaction) transaction;
    return TableCommit.create(identifier, base.startMetadata(), base.currentMetadata());
  }

  private static TableCommit setting(
      Table table, TableIdentifier identifier, String key, String value) {
    return new Entry(
        identifier,
        List.of(sameUuid(table)),
        List.of(new MetadataUpdate.SetProperties(Map.of(key, value))));
  }

  private static UpdateRequirement sameUuid(Table table) {
    return new UpdateRequirement.AssertTableUUID(table.uuid().toString());
  }

  @Test
  void severalChangesOfOneTable() {
    TableIdentifier identifier = named("t");
    Transaction transaction = catalog.createTable(identifier, SCHEMA).newTransaction();
    transaction.updateSchema().addColumn("more", Types.LongType.get()).commit();
    transaction.updateSpec().addField("shard", Expressions.bucket("id", 16)).commit();
    transaction.updateProperties().set("owner", "ann").commit();

    catalog.commitTransaction(commitOf(identifier, transaction));

    assertThat(relay.exchanges("POST", "/transactions/commit"))
        .singleElement()
        .satisfies(e -> assertThat(e.status()).isEqualTo(204));
    Table loaded = catalog.loadTable(identifier);
    assertThat(loaded.schema().findField("more")).isNotNull();
    assertThat(loaded.spec().fields())
        .singleElement()
        .satisfies(f -> assertThat(f.name()).isEqualTo("shard"));
    assertThat(loaded.properties()).containsEntry("owner", "ann");
  }

  @Test
  void changesOfTwoTablesComeTogether() {
    TableIdentifier one = named("one");
    TableIdentifier two = named("two");
    Transaction first = catalog.createTable(one, SCHEMA).newTransaction();
    Transaction second = catalog.createTable(two, SCHEMA).newTransaction();
    first.updateSchema().addColumn("of_one", Types.LongType.get()).commit();
    second.updateSchema().addColumn("of_two", Types.LongType.get()).commit();
    second.newAppend().appendFile(file("a")).commit();

    catalog.commitTransaction(commitOf(one, first), commitOf(two, second));

    assertThat(catalog.loadTable(one).schema().findField("of_one")).isNotNull();
    assertThat(catalog.loadTable(two).schema().findField("of_two")).isNotNull();
    assertThat(catalog.loadTable(two).snapshots()).hasSize(1);
  }

  @Test
  void whenTheLastOneFailsNothingHasChanged() {
    TableIdentifier one = named("one");
    TableIdentifier two = named("two");
    Table tableOne = catalog.createTable(one, SCHEMA);
    catalog.createTable(two, SCHEMA);
    Transaction first = catalog.loadTable(one).newTransaction();
    first.updateSchema().addColumn("of_one", Types.LongType.get()).commit();
    Transaction second = catalog.loadTable(two).newTransaction();
    second.updateSchema().renameColumn("data", "renamed").commit();
    catalog.loadTable(two).updateSchema().deleteColumn("data").commit();
    Table tableTwo = catalog.loadTable(two);

    assertThatThrownBy(() -> catalog.commitTransaction(commitOf(one, first), commitOf(two, second)))
        .isInstanceOf(CommitFailedException.class)
        .hasMessageContaining("Requirement failed: current schema changed: expected id 0 != 1");

    assertThat(metadataLocation(catalog.loadTable(one))).isEqualTo(metadataLocation(tableOne));
    assertThat(metadataLocation(catalog.loadTable(two))).isEqualTo(metadataLocation(tableTwo));
  }

  @Test
  void whenATableDoesNotExistNothingHasChanged() {
    TableIdentifier one = named("one");
    Table table = catalog.createTable(one, SCHEMA);

    assertThatThrownBy(
            () ->
                catalog.commitTransaction(
                    setting(table, one, "n", "1"), setting(table, named("none"), "n", "1")))
        .isInstanceOf(NoSuchTableException.class);

    assertThat(metadataLocation(catalog.loadTable(one))).isEqualTo(metadataLocation(table));
  }

  @Test
  void entriesOfOneTableApplyInOrder() {
    TableIdentifier identifier = named("t");
    Table table = catalog.createTable(identifier, SCHEMA);
    Schema wider =
        new Schema(
            List.of(
                SCHEMA.findField("id"),
                SCHEMA.findField("data"),
                Types.NestedField.optional(3, "more", Types.LongType.get())));

    catalog.commitTransaction(
        new Entry(
            identifier,
            List.of(sameUuid(table), new UpdateRequirement.AssertCurrentSchemaID(0)),
            List.of(
                new MetadataUpdate.AddSchema(wider),
                new MetadataUpdate.SetCurrentSchema(-1),
                new MetadataUpdate.SetProperties(Map.of("first", "1", "both", "1")))),
        // This holds only after the first entry.
        new Entry(
            identifier,
            List.of(new UpdateRequirement.AssertCurrentSchemaID(1)),
            List.of(
                new MetadataUpdate.SetProperties(Map.of("second", "2", "both", "2")),
                new MetadataUpdate.RemoveProperties(Set.of("first")))));

    Table loaded = catalog.loadTable(identifier);
    assertThat(loaded.schema().asStruct()).isEqualTo(wider.asStruct());
    assertThat(loaded.properties())
        .containsEntry("second", "2")
        .containsEntry("both", "2")
        .doesNotContainKey("first");
  }

  @Test
  void aTableIsCreatedTogetherWithAChange() {
    TableIdentifier existing = named("existing");
    TableIdentifier created = named("created");
    Table table = catalog.createTable(existing, SCHEMA);

    catalog.commitTransaction(creationOf(created), setting(table, existing, "n", "1"));

    assertThat(catalog.loadTable(created).schema().asStruct()).isEqualTo(SCHEMA.asStruct());
    assertThat(catalog.loadTable(existing).properties()).containsEntry("n", "1");
  }

  @Test
  void aCreationFailsWithTheRest() {
    TableIdentifier late = named("late");
    TableIdentifier created = named("created");
    TableCommit tooLate = creationOf(late);
    catalog.createTable(late, SCHEMA);

    assertThatThrownBy(() -> catalog.commitTransaction(creationOf(created), tooLate))
        .isInstanceOf(CommitFailedException.class)
        .hasMessageContaining("Requirement failed: table already exists");

    assertThat(catalog.tableExists(created)).isFalse();
  }

  @Test
  void anEntryMayOnlyRequire() {
    TableIdentifier watched = named("watched");
    TableIdentifier changed = named("changed");
    Table watchedTable = catalog.createTable(watched, SCHEMA);
    Table changedTable = catalog.createTable(changed, SCHEMA);
    TableCommit unchanged =
        new Entry(
            watched,
            List.of(sameUuid(watchedTable), new UpdateRequirement.AssertCurrentSchemaID(0)),
            List.of());

    catalog.commitTransaction(unchanged, setting(changedTable, changed, "n", "1"));
    assertThat(catalog.loadTable(changed).properties()).containsEntry("n", "1");
    assertThat(metadataLocation(catalog.loadTable(watched)))
        .isEqualTo(metadataLocation(watchedTable));

    watchedTable.updateSchema().addColumn("more", Types.LongType.get()).commit();
    assertThatThrownBy(
            () -> catalog.commitTransaction(setting(changedTable, changed, "n", "2"), unchanged))
        .isInstanceOf(CommitFailedException.class)
        .hasMessageContaining("Requirement failed: current schema changed");
    assertThat(catalog.loadTable(changed).properties()).containsEntry("n", "1");
  }

  /** What a create transaction sends when it is committed, as one entry. */
  private TableCommit creationOf(TableIdentifier identifier) {
    Transaction staged = catalog.newCreateTableTransaction(identifier, SCHEMA);
    TableMetadata metadata =
        TableMetadata.newTableMetadata(
            SCHEMA, PartitionSpec.unpartitioned(), staged.table().location(), Map.of());
    return new Entry(
        identifier, List.of(new UpdateRequirement.AssertTableDoesNotExist()), metadata.changes());
  }
}
