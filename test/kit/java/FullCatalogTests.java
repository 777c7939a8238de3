package io.landfast.kit;

import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.catalog.CatalogTests;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/**
 * The catalog tests that the kit is built on, with everything switched on that the kit's own class
 * leaves off for all servers: nested namespaces, slashes in names, a location of its own for each
 * table. Only empty namespaces stay off: a namespace here has at least one level.
 */
public class FullCatalogTests extends CatalogTests<RESTCatalog> {
  private static RESTCatalog catalog;

  @BeforeAll
  static void open() {
    catalog = Clients.open(Clients.kitProperties());
  }

  @AfterAll
  static void close() throws Exception {
    catalog.close();
  }

  @BeforeEach
  void wipe() {
    Clients.wipe(catalog, Namespace.empty());
  }

  @Override
  protected RESTCatalog catalog() {
    return catalog;
  }

  @Override
  protected RESTCatalog initCatalog(String name, Map<String, String> properties) {
    Map<String, String> all = Clients.kitProperties();
    all.putAll(properties);
    return Clients.open(all);
  }

  /** Somewhere else than the kit's own class, so that the two cannot meet. */
  @Override
  protected String baseTableLocation(TableIdentifier identifier) {
    String folder = Path.of(System.getProperty("java.io.tmpdir"), "full").toString();
    return "file:" + folder + "/" + identifier.namespace() + "/" + identifier.name();
  }

  @Override
  protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override
  protected boolean supportsServerSideRetry() {
    return true;
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithDot() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return true;
  }
}
