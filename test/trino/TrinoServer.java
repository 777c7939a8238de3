import io.trino.server.Server;

/** Starts a Trino server. Trino's own class that does this is part of its archive only. */
final class TrinoServer {
  public static void main(String[] args) {
    new Server().start(args[0]);
  }
}
