package io.landfast.kit;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.PositionOutputStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Drops that delete files. The warehouse lies on a disk that the tests see too. */
public class PurgeTests extends RelayedTests {
  private static final Duration SOON = Duration.ofSeconds(20);

  /** Makes a table with two snapshots whose data files exist. */
  private Table table(TableIdentifier identifier, Map<String, String> properties) throws Exception {
    Table table =
        catalog.createTable(identifier, SCHEMA, PartitionSpec.unpartitioned(), properties);
    for (String name : List.of("a", "b")) {
      String location = table.locationProvider().newDataLocation(name + ".parquet");
      try (PositionOutputStream file = table.io().newOutputFile(location).create()) {
        file.write(new byte[10]);
      }
      table
          .newFastAppend()
          .appendFile(
              DataFiles.builder(PartitionSpec.unpartitioned())
                  .withPath(location)
                  .withFileSizeInBytes(10)
                  .withRecordCount(1)
                  .build())
          .commit();
    }
    return table;
  }

  private static List<String> files(Table table) throws Exception {
    Path root = Path.of(URI.create(table.location()).getPath());
    if (!Files.exists(root)) {
      return List.of();
    }
    try (Stream<Path> all = Files.walk(root)) {
      return all.filter(Files::isRegularFile)
          .map(file -> file.getFileName().toString())
          .filter(name -> !name.endsWith(".crc")) // Hadoop's own, which no metadata names.
          .toList();
    }
  }

  @Test
  void purgeDeletesEverything() throws Exception {
    Table table = table(named("t"), Map.of());
    assertThat(files(table)).as("2 data files, 2 manifests, 2 lists, 3 of metadata").hasSize(9);
    assertThat(catalog.dropTable(named("t"), true)).isTrue();
    Awaitility.await().atMost(SOON).untilAsserted(() -> assertThat(files(table)).isEmpty());
  }

  @Test
  void withoutPurgeEverythingStays() throws Exception {
    Table table = table(named("t"), Map.of());
    List<String> before = files(table);
    String location = metadataLocation(table);
    assertThat(catalog.dropTable(named("t"), false)).isTrue();
    assertThat(files(table)).containsExactlyInAnyOrderElementsOf(before);
    assertThat(catalog.registerTable(named("back"), location).snapshots()).hasSize(2);
  }

  @Test
  void collectionThatIsOffKeepsDataFiles() throws Exception {
    Table table = table(named("t"), Map.of("gc.enabled", "false"));
    assertThat(catalog.dropTable(named("t"), true)).isTrue();
    Awaitility.await()
        .atMost(SOON)
        .untilAsserted(
            () -> assertThat(files(table)).noneMatch(name -> name.endsWith(".metadata.json")));
    assertThat(files(table)).filteredOn(name -> name.endsWith(".parquet")).hasSize(2);
  }

  @Test
  void aRenamedTableKeepsItsFilesWhenItsOldNameIsPurged() throws Exception {
    Table table = table(named("old"), Map.of());
    List<String> before = files(table);
    catalog.renameTable(named("old"), named("new"));
    Table second = table(named("old"), Map.of());
    assertThat(catalog.dropTable(named("old"), true)).isTrue();
    Awaitility.await().atMost(SOON).untilAsserted(() -> assertThat(files(second)).isEmpty());
    assertThat(files(table)).containsExactlyInAnyOrderElementsOf(before);
  }
}
