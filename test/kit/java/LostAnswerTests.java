package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.UUID;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NamespaceNotEmptyException;
import org.apache.iceberg.relocated.com.google.common.collect.ImmutableMap;
import org.apache.iceberg.relocated.com.google.common.collect.ImmutableSet;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.view.BaseView;
import org.apache.iceberg.view.View;
import org.junit.jupiter.api.Test;

/**
 * Idempotency-Key, as the Java client uses it by itself once a server advertises it. In each test
 * the server does what it is asked for and the answer is lost; the client asks again with the same
 * key, and gets the answer it should have had. Without keys most of these end in a refusal: the
 * table exists already, or no longer.
 *
 * <p>The client looks for null in the maps and sets that it is given, which those of Java refuse.
 */
public class LostAnswerTests extends RelayedTests {
  /** Loses the first answer to such a request, runs the action, and looks at what was sent. */
  private void losing(String method, String pathEnd, Runnable action) {
    relay.forget();
    relay.loseAnswer(exchange -> exchange.is(method, pathEnd));
    action.run();

    List<Relay.Exchange> sent = relay.exchanges(method, pathEnd);
    assertThat(sent).as("%s ...%s is sent twice", method, pathEnd).hasSize(2);
    String key = sent.get(0).sent("Idempotency-Key").orElseThrow();
    assertThat(UUID.fromString(key).version()).isEqualTo(7);
    assertThat(sent.get(1).sent("Idempotency-Key")).hasValue(key);
    assertThat(sent.get(1).status()).isEqualTo(sent.get(0).status());
  }

  private static String metadataLocation(View view) {
    return ((BaseView) view).operations().current().metadataFileLocation();
  }

  @Test
  void namespaceIsCreatedOnce() {
    Namespace created = Namespace.of(namespace.level(0), "created");
    losing(
        "POST", "/namespaces", () -> catalog.createNamespace(created, ImmutableMap.of("a", "b")));
    assertThat(catalog.loadNamespaceMetadata(created)).containsEntry("a", "b");
  }

  @Test
  void namespaceIsDroppedOnce() {
    Namespace dropped = Namespace.of(namespace.level(0), "dropped");
    catalog.createNamespace(dropped);
    losing("DELETE", "dropped", () -> assertThat(catalog.dropNamespace(dropped)).isTrue());
    assertThat(catalog.namespaceExists(dropped)).isFalse();
  }

  @Test
  void namespacePropertiesAreChangedOnce() {
    catalog.setProperties(namespace, ImmutableMap.of("gone", "1"));
    losing(
        "POST", "/properties", () -> catalog.removeProperties(namespace, ImmutableSet.of("gone")));
    assertThat(catalog.loadNamespaceMetadata(namespace)).doesNotContainKey("gone");
  }

  @Test
  void tableIsCreatedOnce() {
    Table[] created = new Table[1];
    losing("POST", "/tables", () -> created[0] = catalog.createTable(named("t"), SCHEMA));
    assertThat(metadataLocation(catalog.loadTable(named("t"))))
        .isEqualTo(metadataLocation(created[0]));
    assertThat(catalog.listTables(namespace)).containsExactly(named("t"));
  }

  @Test
  void rowsAreAppendedOnce() {
    Table table = catalog.createTable(named("t"), SCHEMA);
    losing("POST", "/tables/t", () -> table.newAppend().appendFile(file("a")).commit());
    assertThat(catalog.loadTable(named("t")).snapshots()).hasSize(1);
    // The client goes on from the metadata it got with the second answer.
    table.newAppend().appendFile(file("b")).commit();
    assertThat(catalog.loadTable(named("t")).snapshots()).hasSize(2);
  }

  @Test
  void createTransactionIsCommittedOnce() {
    Transaction transaction = catalog.newCreateTableTransaction(named("t"), SCHEMA);
    transaction.newAppend().appendFile(file("a")).commit();
    losing("POST", "/tables/t", transaction::commitTransaction);
    assertThat(catalog.loadTable(named("t")).snapshots()).hasSize(1);
  }

  @Test
  void severalTablesAreChangedOnce() {
    Transaction one = catalog.createTable(named("one"), SCHEMA).newTransaction();
    Transaction two = catalog.createTable(named("two"), SCHEMA).newTransaction();
    one.updateSchema().addColumn("more", Types.LongType.get()).commit();
    two.updateSchema().addColumn("more", Types.LongType.get()).commit();
    List<TableCommit> commits =
        List.of(
            commitOf(named("one"), (BaseTransaction) one),
            commitOf(named("two"), (BaseTransaction) two));
    losing("POST", "/transactions/commit", () -> catalog.commitTransaction(commits));
    assertThat(catalog.loadTable(named("one")).schema().columns()).hasSize(3);
    assertThat(catalog.loadTable(named("two")).schema().columns()).hasSize(3);
  }

  private static TableCommit commitOf(TableIdentifier identifier, BaseTransaction transaction) {
    return TableCommit.create(
        identifier, transaction.startMetadata(), transaction.currentMetadata());
  }

  @Test
  void tableIsRenamedOnce() {
    catalog.createTable(named("from"), SCHEMA);
    losing("POST", "/tables/rename", () -> catalog.renameTable(named("from"), named("to")));
    assertThat(catalog.listTables(namespace)).containsExactly(named("to"));
  }

  @Test
  void tableIsDroppedOnce() {
    catalog.createTable(named("t"), SCHEMA);
    losing("DELETE", "/tables/t", () -> assertThat(catalog.dropTable(named("t"), false)).isTrue());
    assertThat(catalog.tableExists(named("t"))).isFalse();
  }

  @Test
  void tableIsPurgedOnce() {
    catalog.createTable(named("t"), SCHEMA);
    losing("DELETE", "/tables/t", () -> assertThat(catalog.dropTable(named("t"), true)).isTrue());
    assertThat(catalog.tableExists(named("t"))).isFalse();
  }

  @Test
  void tableIsRegisteredOnce() {
    String location = metadataLocation(catalog.createTable(named("t"), SCHEMA));
    catalog.dropTable(named("t"), false);
    losing("POST", "/register", () -> catalog.registerTable(named("back"), location));
    assertThat(metadataLocation(catalog.loadTable(named("back")))).isEqualTo(location);
  }

  @Test
  void viewIsCreatedOnce() {
    View[] created = new View[1];
    losing("POST", "/views", () -> created[0] = createView(named("v")));
    assertThat(metadataLocation(catalog.loadView(named("v"))))
        .isEqualTo(metadataLocation(created[0]));
  }

  @Test
  void viewIsReplacedOnce() {
    View view = createView(named("v"));
    losing(
        "POST",
        "/views/v",
        () ->
            view.replaceVersion()
                .withSchema(SCHEMA)
                .withDefaultNamespace(namespace)
                .withQuery("spark", "select 2")
                .commit());
    assertThat(catalog.loadView(named("v")).history()).hasSize(2);
  }

  @Test
  void viewIsRenamedOnce() {
    createView(named("from"));
    losing("POST", "/views/rename", () -> catalog.renameView(named("from"), named("to")));
    assertThat(catalog.listViews(namespace)).containsExactly(named("to"));
  }

  @Test
  void viewIsDroppedOnce() {
    createView(named("v"));
    losing("DELETE", "/views/v", () -> assertThat(catalog.dropView(named("v"))).isTrue());
    assertThat(catalog.viewExists(named("v"))).isFalse();
  }

  @Test
  void viewIsRegisteredOnce() {
    String location = metadataLocation(createView(named("v")));
    catalog.dropView(named("v"));
    losing("POST", "/register-view", () -> catalog.registerView(named("back"), location));
    assertThat(metadataLocation(catalog.loadView(named("back")))).isEqualTo(location);
  }

  @Test
  void aRefusalIsGivenAgain() {
    catalog.createTable(named("t"), SCHEMA);
    losing(
        "POST",
        "/tables",
        () ->
            assertThatThrownBy(() -> catalog.createTable(named("t"), SCHEMA))
                .isInstanceOf(AlreadyExistsException.class)
                .hasMessageContaining("Table already exists: " + named("t")));
    losing(
        "DELETE",
        "/namespaces/" + namespace,
        () ->
            assertThatThrownBy(() -> catalog.dropNamespace(namespace))
                .isInstanceOf(NamespaceNotEmptyException.class)
                .hasMessageContaining("is not empty"));
  }

  @Test
  void keysAreNotUsedTwice() {
    catalog.createTable(named("one"), SCHEMA);
    catalog.createTable(named("two"), SCHEMA);
    catalog.dropTable(named("one"), false);
    assertThat(relay.exchanges())
        .filteredOn(e -> !e.method().equals("GET"))
        .extracting(e -> e.sent("Idempotency-Key").orElseThrow())
        .hasSize(3)
        .doesNotHaveDuplicates();
  }
}
