package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.view.BaseView;
import org.apache.iceberg.view.View;
import org.junit.jupiter.api.Test;

/** Tables and views that exist as files already. */
public class RegisterTests extends RelayedTests {
  private static final Schema OTHER =
      new Schema(Types.NestedField.required(1, "other", Types.StringType.get()));

  @Test
  void aTableComesBackAndGoesOn() {
    Table table = catalog.createTable(named("t"), SCHEMA);
    table.newAppend().appendFile(file("a")).commit();
    table.newAppend().appendFile(file("b")).commit();
    String location = metadataLocation(table);
    catalog.dropTable(named("t"), false);

    Table back = catalog.registerTable(named("back"), location);
    assertThat(metadataLocation(back)).as("the file is taken as it is").isEqualTo(location);
    assertThat(back.uuid()).isEqualTo(table.uuid());
    assertThat(back.snapshots()).hasSize(2);

    back.newAppend().appendFile(file("c")).commit();
    String next = metadataLocation(catalog.loadTable(named("back")));
    assertThat(next.substring(next.lastIndexOf('/') + 1))
        .as("numbering continues")
        .startsWith("00003-");
  }

  @Test
  void aTakenNameIsRefused() {
    String location = metadataLocation(catalog.createTable(named("t"), SCHEMA));
    catalog.createTable(named("taken"), OTHER);
    createView(named("a_view"));

    assertThatThrownBy(() -> catalog.registerTable(named("taken"), location))
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageStartingWith("Table already exists: " + named("taken"));
    assertThatThrownBy(() -> catalog.registerTable(named("taken"), location, false))
        .isInstanceOf(AlreadyExistsException.class);
    assertThatThrownBy(() -> catalog.registerTable(named("a_view"), location))
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageContaining("View with same name already exists: " + named("a_view"));
    assertThatThrownBy(() -> catalog.registerTable(named("a_view"), location, true))
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageContaining("View with same name already exists: " + named("a_view"));
    assertThat(catalog.loadTable(named("taken")).schema().asStruct()).isEqualTo(OTHER.asStruct());
  }

  @Test
  void overwritingPointsATableElsewhere() {
    Table source = catalog.createTable(named("source"), SCHEMA);
    String location = metadataLocation(source);
    catalog.dropTable(named("source"), false);
    Table target = catalog.createTable(named("target"), OTHER);

    Table overwritten = catalog.registerTable(named("target"), location, true);

    assertThat(metadataLocation(overwritten))
        .isEqualTo(location)
        .isNotEqualTo(metadataLocation(target));
    assertThat(catalog.loadTable(named("target")).uuid()).isEqualTo(source.uuid());
    assertThatThrownBy(() -> target.updateProperties().set("a", "b").commit())
        .as("who still has the old table cannot commit to the new one")
        .hasMessageContaining("UUID does not match");
    catalog.loadTable(named("target")).updateProperties().set("a", "b").commit();
    assertThat(catalog.loadTable(named("target")).properties()).containsEntry("a", "b");
  }

  @Test
  void overwritingNothingRegisters() {
    String location = metadataLocation(catalog.createTable(named("source"), SCHEMA));
    catalog.dropTable(named("source"), false);
    assertThat(metadataLocation(catalog.registerTable(named("new"), location, true)))
        .isEqualTo(location);
  }

  @Test
  void aMissingNamespaceIsRefused() {
    String location = metadataLocation(catalog.createTable(named("t"), SCHEMA));
    catalog.dropTable(named("t"), false);
    assertThatThrownBy(
            () -> catalog.registerTable(TableIdentifier.of("no_such_namespace", "t"), location))
        .isInstanceOf(NoSuchNamespaceException.class);
  }

  @Test
  void aViewComesBackAndGoesOn() {
    View view = createView(named("v"));
    String location = ((BaseView) view).operations().current().metadataFileLocation();
    catalog.dropView(named("v"));
    catalog.createTable(named("a_table"), SCHEMA, PartitionSpec.unpartitioned(), Map.of());

    assertThatThrownBy(() -> catalog.registerView(named("a_table"), location))
        .isInstanceOf(AlreadyExistsException.class)
        .hasMessageContaining("Table with same name already exists: " + named("a_table"));

    View back = catalog.registerView(named("back"), location);
    assertThat(back.uuid()).isEqualTo(view.uuid());
    assertThat(((BaseView) back).operations().current().metadataFileLocation()).isEqualTo(location);
    back.updateProperties().set("owner", "ann").commit();
    assertThat(catalog.loadView(named("back")).properties()).containsEntry("owner", "ann");
  }
}
