package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Names that are hard to carry in a URL, and names that tables and views share. */
public class NameTests extends RelayedTests {
  @ParameterizedTest
  @ValueSource(
      strings = {
        "with space",
        "a+b",
        "100%",
        "a%2Fb",
        "a/b",
        "a.b",
        "ünï",
        "日本",
        "🤪",
        "a&b=c?d#e",
        "a;b,c",
        "'\"",
        "\\",
        "~_-",
        "UPPER"
      })
  void everyNameIsCarried(String name) {
    Namespace inner = Namespace.of(namespace.level(0), name, name);
    catalog.createNamespace(Namespace.of(namespace.level(0), name));
    catalog.createNamespace(inner);
    assertThat(catalog.listNamespaces(namespace))
        .containsExactly(Namespace.of(namespace.level(0), name));
    assertThat(catalog.listNamespaces(Namespace.of(namespace.level(0), name)))
        .containsExactly(inner);

    TableIdentifier table = TableIdentifier.of(inner, name);
    TableIdentifier view = TableIdentifier.of(inner, name + "v");
    catalog.createTable(table, SCHEMA);
    createView(view);
    assertThat(catalog.listTables(inner)).containsExactly(table);
    assertThat(catalog.listViews(inner)).containsExactly(view);
    catalog.loadTable(table).updateProperties().set("a", "b").commit();
    assertThat(catalog.loadTable(table).properties()).containsEntry("a", "b");
    catalog.renameTable(table, TableIdentifier.of(inner, name + "2"));
    assertThat(catalog.tableExists(table)).isFalse();
    assertThat(catalog.dropTable(TableIdentifier.of(inner, name + "2"), false)).isTrue();
    assertThat(catalog.dropView(view)).isTrue();
    assertThat(catalog.dropNamespace(inner)).isTrue();
  }

  @Test
  void caseDistinguishes() {
    catalog.createTable(named("t"), SCHEMA);
    catalog.createTable(named("T"), SCHEMA);
    assertThat(catalog.listTables(namespace)).containsExactlyInAnyOrder(named("t"), named("T"));
    catalog.dropTable(named("T"), false);
    catalog.renameTable(named("t"), named("T"));
    assertThat(catalog.listTables(namespace)).containsExactly(named("T"));
  }

  @Test
  void tablesAndViewsShareNames() {
    catalog.createTable(named("table"), SCHEMA);
    createView(named("view"));

    assertThatThrownBy(() -> createView(named("table")))
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageContaining("Table with same name already exists: " + named("table"));
    assertThatThrownBy(() -> catalog.createTable(named("view"), SCHEMA))
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageContaining("View with same name already exists: " + named("view"));
    assertThatThrownBy(() -> catalog.renameTable(named("table"), named("view")))
        .isInstanceOf(AlreadyExistsException.class);
    assertThatThrownBy(() -> catalog.renameView(named("view"), named("table")))
        .isInstanceOf(AlreadyExistsException.class);
    assertThatThrownBy(() -> catalog.loadTable(named("view")))
        .isInstanceOf(NoSuchTableException.class);
    assertThatThrownBy(() -> catalog.loadView(named("table")))
        .isInstanceOf(NoSuchViewException.class);
    assertThat(catalog.dropTable(named("view"), false)).isFalse();
    assertThat(catalog.dropView(named("table"))).isFalse();
    assertThat(catalog.listTables(namespace)).containsExactly(named("table"));
    assertThat(catalog.listViews(namespace)).containsExactly(named("view"));
  }

  /** A staged creation takes no name, so a view may come between; then the commit must fail. */
  @Test
  void aViewComesBeforeAStagedTable() {
    var transaction = catalog.newCreateTableTransaction(named("name"), SCHEMA);
    createView(named("name"));
    assertThatThrownBy(transaction::commitTransaction)
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageContaining("View with same name already exists: " + named("name"));
    assertThat(catalog.tableExists(named("name"))).isFalse();
  }
}
