package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lists in pages, as a client with rest-page-size asks for them. */
public class PageTests extends RelayedTests {
  private static final int ENTRIES = 20;

  /** Lists with a page size, and returns what the client makes of the pages. */
  private <T> List<T> list(int pageSize, String pathEnd, Function<RESTCatalog, List<T>> list)
      throws Exception {
    try (RESTCatalog paging = open(Map.of("rest-page-size", String.valueOf(pageSize)))) {
      relay.forget();
      List<T> listed = list.apply(paging);
      List<Relay.Exchange> requests = relay.exchanges("GET", pathEnd);
      assertThat(requests).allSatisfy(e -> assertThat(e.query()).contains("pageSize=" + pageSize));
      // One more entry, of the other kind, may count on the server's side.
      assertThat(requests).hasSizeBetween(pages(ENTRIES, pageSize), pages(ENTRIES + 1, pageSize));
      return listed;
    }
  }

  private static int pages(int entries, int pageSize) {
    return (entries + pageSize - 1) / pageSize;
  }

  private List<TableIdentifier> names() {
    return IntStream.range(0, ENTRIES).mapToObj(i -> named("n" + i)).toList();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7, 10, 20, 21})
  void tables(int pageSize) throws Exception {
    names().forEach(name -> catalog.createTable(name, SCHEMA));
    createView(named("a_view"));
    assertThat(list(pageSize, "/tables", c -> c.listTables(namespace)))
        .containsExactlyInAnyOrderElementsOf(names());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7, 10, 20, 21})
  void views(int pageSize) throws Exception {
    names().forEach(this::createView);
    catalog.createTable(named("a_table"), SCHEMA);
    assertThat(list(pageSize, "/views", c -> c.listViews(namespace)))
        .containsExactlyInAnyOrderElementsOf(names());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7, 10, 20, 21})
  void namespaces(int pageSize) throws Exception {
    List<Namespace> children =
        names().stream().map(name -> Namespace.of(namespace.level(0), name.name())).toList();
    children.forEach(catalog::createNamespace);
    catalog.createNamespace(Namespace.of(namespace.level(0), "n0", "grandchild"));
    assertThat(list(pageSize, "/namespaces", c -> c.listNamespaces(namespace)))
        .containsExactlyInAnyOrderElementsOf(children);
  }
}
