package io.landfast.kit;

import static org.apache.iceberg.types.Types.NestedField.optional;
import static org.apache.iceberg.types.Types.NestedField.required;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.view.View;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Gives each test a client that talks through a {@link Relay}, and a namespace of its own. */
abstract class RelayedTests {
  static final Schema SCHEMA =
      new Schema(
          required(1, "id", Types.LongType.get()), optional(2, "data", Types.StringType.get()));

  Relay relay;
  RESTCatalog catalog;
  Namespace namespace;

  @BeforeEach
  void open() throws Exception {
    relay = new Relay();
    catalog = open(Map.of());
    namespace = Namespace.of("ns_" + UUID.randomUUID().toString().substring(0, 8));
    catalog.createNamespace(namespace);
    relay.forget();
  }

  @AfterEach
  void close() throws Exception {
    catalog.close();
    relay.close();
  }

  /** Opens one more client on the same relay. The caller closes it. */
  RESTCatalog open(Map<String, String> properties) {
    Map<String, String> all = new HashMap<>(properties);
    all.put("uri", relay.uri());
    return Clients.open(all);
  }

  TableIdentifier named(String name) {
    return TableIdentifier.of(namespace, name);
  }

  View createView(TableIdentifier identifier) {
    return catalog
        .buildView(identifier)
        .withSchema(SCHEMA)
        .withDefaultNamespace(namespace)
        .withQuery("spark", "select * from t")
        .create();
  }

  /** A data file that nobody will ever read. */
  static DataFile file(String name) {
    return DataFiles.builder(PartitionSpec.unpartitioned())
        .withPath("/nowhere/" + name + ".parquet")
        .withFileSizeInBytes(10)
        .withRecordCount(2)
        .build();
  }

  static String metadataLocation(Table table) {
    return ((HasTableOperations) table).operations().current().metadataFileLocation();
  }
}
