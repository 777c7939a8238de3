package io.landfast.kit;

import static org.apache.iceberg.types.Types.NestedField.optional;
import static org.apache.iceberg.types.Types.NestedField.required;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.stream.Stream;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.types.EdgeAlgorithm;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Types of format version 3, of which the published kit knows none. */
public class FormatTests extends RelayedTests {
  private static final Map<String, String> V2 = Map.of("format-version", "2");
  private static final Map<String, String> V3 = Map.of("format-version", "3");

  static Stream<Type> newTypes() {
    return Stream.of(
        Types.VariantType.get(),
        Types.TimestampNanoType.withZone(),
        Types.TimestampNanoType.withoutZone(),
        Types.GeometryType.crs84(),
        Types.GeographyType.of("OGC:CRS84", EdgeAlgorithm.KARNEY),
        Types.UnknownType.get());
  }

  @ParameterizedTest
  @MethodSource("newTypes")
  void newTypesNeedVersion3(Type type) {
    Schema nested =
        new Schema(
            required(10, "id", Types.LongType.get()),
            optional(11, "data", type),
            optional(12, "list", Types.ListType.ofOptional(13, type)),
            optional(14, "map", Types.MapType.ofOptional(15, 16, Types.StringType.get(), type)),
            optional(17, "struct", Types.StructType.of(optional(18, "inner", type))));

    assertThatThrownBy(
            () -> catalog.createTable(named("old"), nested, PartitionSpec.unpartitioned(), V2))
        .hasMessageContaining("is not supported until v3");
    assertThat(catalog.tableExists(named("old"))).isFalse();

    catalog.createTable(named("new"), nested, PartitionSpec.unpartitioned(), V3);
    Table loaded = catalog.loadTable(named("new"));
    assertThat(TableUtil.formatVersion(loaded)).isEqualTo(3);
    assertThat(loaded.schema().asStruct())
        .isEqualTo(
            new Schema(
                    required(1, "id", Types.LongType.get()),
                    optional(2, "data", type),
                    optional(3, "list", Types.ListType.ofOptional(6, type)),
                    optional(
                        4, "map", Types.MapType.ofOptional(7, 8, Types.StringType.get(), type)),
                    optional(5, "struct", Types.StructType.of(optional(9, "inner", type))))
                .asStruct());
  }

  @ParameterizedTest
  @MethodSource("newTypes")
  void newTypesAreAdded(Type type) {
    Table table = catalog.createTable(named("t"), SCHEMA, PartitionSpec.unpartitioned(), V2);
    assertThatThrownBy(() -> table.updateSchema().addColumn("more", type).commit())
        .hasMessageContaining("is not supported until v3");
    table.updateProperties().set("format-version", "3").commit();
    table.refresh();
    table.updateSchema().addColumn("more", type).commit();
    assertThat(catalog.loadTable(named("t")).schema().findField("more").type()).isEqualTo(type);
  }

  @Test
  void defaultValuesSurvive() {
    Table table = catalog.createTable(named("t"), SCHEMA, PartitionSpec.unpartitioned(), V3);
    table.updateSchema().addColumn("more", Types.StringType.get(), Literal.of("unknown")).commit();
    table.updateSchema().updateColumnDefault("more", Literal.of("later")).commit();

    Types.NestedField field = catalog.loadTable(named("t")).schema().findField("more");
    assertThat(field.initialDefault()).isEqualTo("unknown");
    assertThat(field.writeDefault()).isEqualTo("later");
  }

  @Test
  void rowsAreNumbered() {
    Table table = catalog.createTable(named("t"), SCHEMA, PartitionSpec.unpartitioned(), V3);
    table.newAppend().appendFile(file("a")).appendFile(file("b")).commit();
    table.newAppend().appendFile(file("c")).commit();
    assertThat(catalog.loadTable(named("t")).snapshots())
        .extracting(Snapshot::firstRowId)
        .containsExactly(0L, 4L);
  }
}
