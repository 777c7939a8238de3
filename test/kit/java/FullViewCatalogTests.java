package io.landfast.kit;

import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.view.ViewCatalogTests;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** The view tests that the kit is built on, as {@link FullCatalogTests} is for tables. */
public class FullViewCatalogTests extends ViewCatalogTests<RESTCatalog> {
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
  protected Catalog tableCatalog() {
    return catalog;
  }

  @Override
  protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override
  protected boolean supportsServerSideRetry() {
    return true;
  }
}
