package io.landfast.kit;

import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCatalog;

/** Makes clients of the server under test, which the system properties uri and warehouse name. */
final class Clients {
  private Clients() {}

  static String uri() {
    return System.getProperty("uri");
  }

  static String warehouse() {
    return System.getProperty("warehouse");
  }

  /** Returns a client with its own HTTP connections and its own cache. The caller closes it. */
  static RESTCatalog open(Map<String, String> properties) {
    Map<String, String> all = new HashMap<>();
    all.put("uri", uri());
    all.put("warehouse", warehouse());
    all.putAll(properties);
    RESTCatalog catalog = new RESTCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize("landfast", all);
    return catalog;
  }

  /** The defaults and overrides that the kit's abstract tests expect a catalog to have. */
  static Map<String, String> kitProperties() {
    Map<String, String> properties = new HashMap<>();
    properties.put("table-default.default-key1", "catalog-default-key1");
    properties.put("table-default.default-key2", "catalog-default-key2");
    properties.put("table-default.override-key3", "catalog-default-key3");
    properties.put("table-override.override-key3", "catalog-override-key3");
    properties.put("table-override.override-key4", "catalog-override-key4");
    properties.put("view-default.key1", "catalog-default-key1");
    properties.put("view-default.key2", "catalog-default-key2");
    properties.put("view-default.key3", "catalog-default-key3");
    properties.put("view-override.key3", "catalog-override-key3");
    properties.put("view-override.key4", "catalog-override-key4");
    return properties;
  }

  /** Drops everything below a namespace, and at the root everything there is. */
  static void wipe(RESTCatalog catalog, Namespace parent) {
    for (Namespace child : catalog.listNamespaces(parent)) {
      wipe(catalog, child);
      catalog.listViews(child).forEach(catalog::dropView);
      catalog.listTables(child).forEach(table -> catalog.dropTable(table, false));
      catalog.dropNamespace(child);
    }
  }
}
