package io.landfast.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Flink SQL on Iceberg's connector. Each job runs in a small cluster of its own, inside this process.
 *
 * <p>The system properties {@code uri}, {@code warehouse}, {@code s3warehouse} and {@code page} name the
 * catalog, a warehouse of files, one on S3, and docs/clients/flink.md. In statements, {@code db} stands for the
 * database of the test.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class FlinkTests {
  private static final String CATALOG =
      "CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'rest', 'uri' = '%s', 'warehouse' = '%s')"
          .formatted(System.getProperty("uri"), System.getProperty("warehouse"));

  private final String database = "test_" + UUID.randomUUID().toString().replace("-", "");
  private final TableEnvironment batch = environment(EnvironmentSettings.inBatchMode());
  private final TableEnvironment streaming = environment(EnvironmentSettings.inStreamingMode());

  private static TableEnvironment environment(EnvironmentSettings mode) {
    TableEnvironment env = TableEnvironment.create(mode);
    set(env, "parallelism.default", "2");
    // Hadoop's file system remembers the class loader of the first job, which ends with it.
    set(env, "classloader.check-leaked-classloader", "false");
    set(env, "execution.checkpointing.interval", "100 ms");
    env.executeSql(CATALOG);
    env.useCatalog("lake");
    return env;
  }

  /** Sets an option of the jobs to come. */
  private static void set(TableEnvironment env, String key, String value) {
    Configuration option = new Configuration();
    option.setString(key, value);
    env.getConfig().addConfiguration(option);
  }

  /** Runs a statement to its end and returns its rows as text. */
  private static List<List<String>> rows(TableEnvironment env, String sql) throws Exception {
    List<List<String>> rows = new ArrayList<>();
    TableResult result = env.executeSql(sql);
    if (sql.startsWith("INSERT")) {
      result.await(); // Its only row, closed, would cancel the job, whose cluster has gone with it.
      return rows;
    }
    try (CloseableIterator<Row> iterator = result.collect()) {
      while (iterator.hasNext()) {
        Row row = iterator.next();
        List<String> values = new ArrayList<>();
        for (int i = 0; i < row.getArity(); i++) {
          values.add(String.valueOf(row.getField(i)));
        }
        rows.add(values);
      }
    }
    return rows;
  }

  private String named(String sql) {
    return sql.replaceAll("\\bdb\\b", database);
  }

  private List<List<String>> run(String sql) throws Exception {
    return rows(batch, named(sql));
  }

  private List<List<String>> stream(String sql) throws Exception {
    return rows(streaming, named(sql));
  }

  /** The files below a folder, without those that Hadoop writes beside each of its own, with checksums. */
  private static List<String> files(Path folder) throws Exception {
    if (Files.notExists(folder)) {
      return List.of();
    }
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).map(Path::toString).filter(name -> !name.endsWith(".crc")).toList();
    }
  }

  /** The block in a language of a section of the page, with the values of this run. */
  private static String block(String section, String language) throws Exception {
    String page = Files.readString(Path.of(System.getProperty("page")));
    Matcher text = Pattern.compile("(?ms)^## %s\n(.*?)(?=^## |\\z)".formatted(section)).matcher(page);
    assertTrue(text.find(), section);
    Matcher block = Pattern.compile("(?ms)^```%s\n(.*?)^```$".formatted(language)).matcher(text.group(1));
    assertTrue(block.find(), language);
    return block.group(1).replace("http://127.0.0.1:8181", System.getProperty("uri"));
  }

  @BeforeEach
  void createDatabase() throws Exception {
    run("CREATE DATABASE db");
  }

  /** Drops what a test has left, which is one more check. CASCADE is not for Iceberg's databases. */
  @AfterEach
  void dropDatabase() throws Exception {
    for (List<String> table : run("SHOW TABLES FROM db")) {
      run("DROP TABLE db.`%s`".formatted(table.get(0)));
    }
    run("DROP DATABASE db");
    assertFalse(run("SHOW DATABASES").contains(List.of(database)));
  }

  /** The quick start as it stands on the page, but for the address. */
  @Test
  void quickStart() throws Exception {
    Configuration options = new Configuration(); // The API has no SET; only Flink's SQL client does.
    List<String> statements = new ArrayList<>();
    for (String statement : block("Quick start", "sql").strip().split(";\\s*(\n|$)")) {
      Matcher option = Pattern.compile("SET '(.*)' = '(.*)'").matcher(statement);
      if (option.matches()) {
        options.setString(option.group(1), option.group(2));
      } else {
        statements.add(statement);
      }
    }
    TableEnvironment env = TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(options).build());
    List<List<String>> answer = null;
    try {
      for (String statement : statements) {
        answer = rows(env, statement);
      }
    } finally {
      env.executeSql("DROP TABLE IF EXISTS landfast.spring.rain");
      env.executeSql("DROP DATABASE IF EXISTS landfast.spring");
    }
    List<List<String>> expected =
        block("Quick start", "text").lines().skip(2)
            .map(line -> Arrays.stream(line.split("\\|")).map(String::strip).toList())
            .toList();
    assertEquals(expected, answer);
  }

  /** The page's catalog on S3. Endpoint and region come from Landfast, the keys from this process's environment. */
  @Test
  void onS3() throws Exception {
    String catalog = block("Files on S3", "sql").replace("'lake'", "'%s'".formatted(System.getProperty("s3warehouse")));
    batch.executeSql(catalog.strip().replaceAll(";$", ""));
    run("CREATE DATABASE landfast.db");
    run("CREATE TABLE landfast.db.t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('format-version' = '2')");
    run("INSERT INTO landfast.db.t VALUES (1), (2)");
    run("INSERT OVERWRITE landfast.db.t SELECT id + 10 FROM landfast.db.t");
    assertEquals(List.of(List.of("11"), List.of("12")), run("SELECT * FROM landfast.db.t ORDER BY id"));
    assertTrue(run("SELECT file_path FROM landfast.db.`t$files`").get(0).get(0).startsWith("s3://"));
    run("DROP TABLE landfast.db.t");
    run("DROP DATABASE landfast.db");
  }

  @Test
  void insertOverwriteSelect() throws Exception {
    run("CREATE TABLE db.t (id BIGINT, part STRING) PARTITIONED BY (part)");
    run("INSERT INTO db.t VALUES (1, 'a'), (2, 'b'), (3, 'b')");
    run("INSERT OVERWRITE db.t PARTITION (part = 'b') SELECT CAST(9 AS BIGINT)");
    assertEquals(List.of(List.of("1", "a"), List.of("9", "b")), run("SELECT * FROM db.t ORDER BY id"));
    List<List<String>> operations = run("SELECT operation FROM db.`t$snapshots` ORDER BY committed_at");
    assertEquals(List.of(List.of("append"), List.of("overwrite")), operations);
    assertEquals(List.of(List.of("main", "BRANCH")), run("SELECT name, type FROM db.`t$refs`"));
  }

  @Test
  void everyType() throws Exception {
    run(
        "CREATE TABLE db.t (b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, de DECIMAL(20, 3), s STRING, bin BYTES, da DATE,"
            + " ti TIME, ts TIMESTAMP(6), tz TIMESTAMP_LTZ(6), a ARRAY<INT>, m MAP<STRING, INT>, r ROW<x INT, y STRING>)");
    set(batch, "table.local-time-zone", "UTC");
    run(
        "INSERT INTO db.t VALUES (TRUE, -1, 9223372036854775807, CAST(1.5 AS FLOAT), 1e300, 12.345, 'größe', x'41',"
            + " DATE '2026-01-02', TIME '23:59:59', TIMESTAMP '2026-01-02 03:04:05.000006',"
            + " CAST(TIMESTAMP '2026-01-02 03:04:05.000006' AS TIMESTAMP_LTZ(6)), ARRAY[1, 2], MAP['k', 3], ROW(4, 'z'))");
    List<String> row = run("SELECT b, i, l, f, d, de, s, DECODE(bin, 'UTF-8'), da, ti, ts, tz, a[2], m['k'], r.y FROM db.t").get(0);
    assertEquals(
        List.of(
            "true", "-1", "9223372036854775807", "1.5", "1.0E300", "12.345", "größe", "A", "2026-01-02", "23:59:59",
            "2026-01-02T03:04:05.000006", "2026-01-02T03:04:05.000006Z", "2", "3", "z"),
        row);
  }

  /** In streaming mode the last row of a key replaces those before it, by files that delete them. */
  @Test
  void upsert() throws Exception {
    run(
        "CREATE TABLE db.t (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED)"
            + " WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')");
    stream("INSERT INTO db.t VALUES (1, 'a'), (2, 'b')");
    stream("INSERT INTO db.t VALUES (2, 'c'), (3, 'd')");
    assertEquals(List.of(List.of("1", "a"), List.of("2", "c"), List.of("3", "d")), run("SELECT * FROM db.t ORDER BY id"));
    assertFalse(run("SELECT content FROM db.`t$delete_files`").isEmpty());
  }

  /** A job that commits at every checkpoint writes each of its rows once. */
  @Test
  void checkpoints() throws Exception {
    run("CREATE TABLE db.t (id BIGINT)");
    streaming.executeSql(
        "CREATE TEMPORARY TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '500',"
            + " 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000')");
    stream("INSERT INTO db.t SELECT id FROM numbers");
    assertEquals(List.of(List.of("1000", "1000", "500500")), run("SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM db.t"));
    assertTrue(run("SELECT snapshot_id FROM db.`t$snapshots`").size() > 2);
  }

  @Test
  void twoJobsAtTheSameTime() throws Exception {
    run("CREATE TABLE db.t (id INT) WITH ('commit.retry.num-retries' = '20')");
    set(batch, "table.dml-sync", "false");
    List<TableResult> jobs = new ArrayList<>();
    for (int job = 0; job < 2; job++) {
      jobs.add(batch.executeSql(named("INSERT INTO db.t VALUES (%d), (%d)".formatted(2 * job, 2 * job + 1))));
    }
    for (TableResult job : jobs) {
      job.await();
    }
    assertEquals(List.of(List.of("4", "6")), run("SELECT COUNT(*), SUM(id) FROM db.t"));
    assertEquals(2, run("SELECT snapshot_id FROM db.`t$snapshots`").size());
  }

  @Test
  void timeTravel() throws Exception {
    run("CREATE TABLE db.t (id INT)");
    run("INSERT INTO db.t VALUES (1)");
    String first = run("SELECT snapshot_id FROM db.`t$snapshots`").get(0).get(0);
    run("INSERT INTO db.t VALUES (2)");
    assertEquals(List.of(List.of("1")), run("SELECT * FROM db.t /*+ OPTIONS('snapshot-id' = '%s') */".formatted(first)));
    assertEquals(List.of(List.of("1"), List.of("2")), run("SELECT * FROM db.t ORDER BY id"));
  }

  @Test
  void alter() throws Exception {
    run("CREATE TABLE db.t (id INT, name STRING, gone INT) WITH ('k' = 'v')");
    run("INSERT INTO db.t VALUES (1, 'x', 0)");
    run("ALTER TABLE db.t ADD (added INT FIRST)");
    run("ALTER TABLE db.t MODIFY id BIGINT");
    run("ALTER TABLE db.t DROP gone");
    run("ALTER TABLE db.t SET ('k' = 'w', 'more' = '1')");
    run("ALTER TABLE db.t RENAME TO u");
    assertEquals(List.of(List.of("u")), run("SHOW TABLES FROM db"));
    assertEquals(List.of(List.of("null", "1", "x")), run("SELECT added, id, name FROM db.u"));
    String shown = run("SHOW CREATE TABLE db.u").get(0).get(0);
    assertTrue(shown.contains("'k' = 'w'") && shown.contains("'more' = '1'"), shown);
  }

  @Test
  void nested() throws Exception {
    batch.executeSql(named(CATALOG.replace("CATALOG lake WITH (", "CATALOG below WITH ('base-namespace' = 'db', ")));
    run("CREATE DATABASE below.eu");
    run("CREATE TABLE below.eu.t (id INT)");
    run("INSERT INTO below.eu.t VALUES (1)");
    assertEquals(List.of(List.of("1")), run("SELECT * FROM below.eu.t"));
    batch.useCatalog("below");
    assertEquals(List.of(List.of("eu")), run("SHOW DATABASES"));
    batch.useCatalog("lake");
    refused("is not empty", "DROP DATABASE db RESTRICT");
    run("DROP TABLE below.eu.t");
    run("DROP DATABASE below.eu");
  }

  /** Expects that a statement fails, and that an error or one of its causes says so with this text. */
  private void refused(String text, String sql) {
    Throwable error = assertThrows(Exception.class, () -> run(sql));
    StringBuilder said = new StringBuilder();
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      said.append(cause.getMessage()).append('\n');
    }
    assertTrue(said.toString().contains(text), said.toString());
  }

  @Test
  void refused() throws Exception {
    run("CREATE TABLE db.t (id INT)");
    refused("already exists", "CREATE TABLE db.t (id INT)");
    refused("already exists", "CREATE DATABASE db");
    refused("is not empty", "DROP DATABASE db RESTRICT");
    refused("does not exist", "DROP TABLE db.absent");
    refused("does not exist", "CREATE TABLE absent.t (id INT)");
    refused("table should be resolved", "CREATE VIEW db.v AS SELECT id FROM db.t");
    run("CREATE TABLE IF NOT EXISTS db.t (id INT)");
    run("DROP TABLE IF EXISTS db.absent");
    run("CREATE DATABASE IF NOT EXISTS db");
    assertEquals(List.of(List.of("t")), run("SHOW TABLES FROM db"));
  }

  @Test
  void dropDeletesTheFiles() throws Exception {
    run("CREATE TABLE db.t (id INT)");
    run("INSERT INTO db.t VALUES (1)");
    String file = run("SELECT file_path FROM db.`t$files`").get(0).get(0);
    Path folder = Path.of(URI.create(file).getPath()).getParent().getParent();
    assertTrue(files(folder).size() >= 4, "data, manifest, manifest list, metadata");
    run("DROP TABLE db.t");
    while (!files(folder).isEmpty()) {
      TimeUnit.MILLISECONDS.sleep(50); // The class's timeout bounds this.
    }
  }
}
