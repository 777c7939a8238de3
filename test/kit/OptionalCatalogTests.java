package io.landfast.kit;

import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The tests that the kit holds but can be told to run by no property, although Landfast supports what
 * they test: nested namespaces, slashes in names, and a location of its own for each table.
 *
 * <p>Only the methods tagged "optional" are run. All others are the kit's own class once more.
 */
public class OptionalCatalogTests extends RESTCompatibilityKitCatalogTests {
  /** The two tests of nested namespaces use the same names, which the kit's own clearing leaves out. */
  @BeforeEach
  void dropNestedNamespaces() {
    Namespace parent = Namespace.of("parent");
    if (catalog().namespaceExists(parent)) {
      catalog().listNamespaces(parent).forEach(catalog()::dropNamespace);
      catalog().dropNamespace(parent);
    }
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return true;
  }

  @Override
  @Test
  @Tag("optional")
  public void testListNestedNamespaces() {
    super.testListNestedNamespaces();
  }

  @Override
  @Test
  @Tag("optional")
  public void testDropNamespaceWithNestedNamespace() {
    super.testDropNamespaceWithNestedNamespace();
  }

  @Override
  @Test
  @Tag("optional")
  public void testNamespaceWithSlash() {
    super.testNamespaceWithSlash();
  }

  @Override
  @Test
  @Tag("optional")
  public void testTableNameWithSlash() {
    super.testTableNameWithSlash();
  }

  /** The kit disables this one because its own server cannot be configured for a single test. */
  @Override
  @Test
  @Tag("optional")
  public void createTableInUniqueLocation() {
    super.createTableInUniqueLocation();
  }
}
