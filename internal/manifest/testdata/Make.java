import java.nio.file.*;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.catalog.*;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;

public class Make {
  static String touch(String location) throws Exception {
    Path p = Paths.get(location.substring("file://".length()));
    java.nio.file.Files.createDirectories(p.getParent());
    java.nio.file.Files.write(p, new byte[] {1});
    return location;
  }

  public static void main(String[] args) throws Exception {
    RESTCatalog catalog = new RESTCatalog();
    catalog.initialize("gen", Map.of("uri", args[0], "warehouse", "gen", "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"));
    Schema schema = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()), Types.NestedField.optional(2, "a city", Types.StringType.get()));
    PartitionSpec spec = PartitionSpec.builderFor(schema).identity("a city").build();
    for (String[] v : new String[][] {{"1", "gzip"}, {"2", "zstd"}, {"3", "snappy"}}) {
      String name = "java" + v[0], at = "file:///w/main/" + name;
      Table t = catalog.buildTable(TableIdentifier.of("ns", name), schema).withLocation(at).withPartitionSpec(spec)
          .withProperties(Map.of("format-version", v[0], "write.manifest.compression-codec", v[1], "commit.manifest.min-count-to-merge", "2")).create();
      AppendFiles append = t.newAppend();
      for (int i = 0; i < 3; i++) append.appendFile(data(spec, at + "/data/first-" + i + ".parquet"));
      append.commit();
      DataFile second = data(spec, at + "/data/second.parquet");
      t.newAppend().appendFile(second).commit();
      if (v[0].equals("2")) {
        t.newRowDelta()
            .addDeletes(FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withPath(touch(at + "/data/position-deletes.parquet")).withPartitionPath("a city=Narvik").withFileSizeInBytes(1).withRecordCount(1).build())
            .addDeletes(FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(1).withPath(touch(at + "/data/equality-deletes.parquet")).withPartitionPath("a city=Narvik").withFileSizeInBytes(1).withRecordCount(1).build())
            .commit();
      }
      if (v[0].equals("3")) {
        touch(at + "/data/deletes.puffin");
        t.newRowDelta()
            .addDeletes(FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withFormat(FileFormat.PUFFIN).withPath(at + "/data/deletes.puffin").withPartitionPath("a city=Narvik")
                .withFileSizeInBytes(1).withRecordCount(1).withReferencedDataFile(second.location()).withContentOffset(4).withContentSizeInBytes(10).build())
            .commit();
        t.updatePartitionStatistics().setPartitionStatistics(ImmutableGenericPartitionStatisticsFile.builder().snapshotId(t.currentSnapshot().snapshotId())
            .path(touch(at + "/metadata/partition-stats.parquet")).fileSizeInBytes(1).build()).commit();
      }
      t.newDelete().deleteFile(at + "/data/first-0.parquet").commit();
      System.out.println(((HasTableOperations) t).operations().refresh().metadataFileLocation());
    }
  }

  static DataFile data(PartitionSpec spec, String at) throws Exception {
    return DataFiles.builder(spec).withPath(touch(at)).withPartitionPath("a city=Narvik").withFileSizeInBytes(1).withRecordCount(10).build();
  }
}
