package io.landfast.kit;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;

/**
 * Stands between a client and the server under test, writes down what passes, and loses an answer
 * when told to. Every byte passes as it is: a client may well care for how the name of a header is
 * written.
 */
final class Relay implements AutoCloseable {
  private static final int TIMEOUT_MILLIS = 60_000;

  private static final byte[] LOST =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
          .getBytes(StandardCharsets.ISO_8859_1);

  /**
   * One request as it arrived, and what the server answered to it, even if the client never saw
   * that.
   */
  record Exchange(
      String method,
      String path,
      String query,
      List<String> request,
      int status,
      List<String> answer) {
    Optional<String> sent(String header) {
      return value(request, header);
    }

    Optional<String> answered(String header) {
      return value(answer, header);
    }

    boolean is(String wantMethod, String pathEnd) {
      return method.equals(wantMethod) && path.endsWith(pathEnd);
    }

    @Override
    public String toString() {
      return method + " " + path + (query.isEmpty() ? "" : "?" + query) + " -> " + status;
    }
  }

  /** A request or an answer: its first line, its headers, and all its bytes. */
  private record Message(String first, List<String> headers, byte[] bytes) {}

  private final ServerSocket listener = new ServerSocket(0, 0, InetAddress.getByName("127.0.0.1"));
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private final List<Exchange> exchanges = new CopyOnWriteArrayList<>();
  private final AtomicReference<Predicate<Exchange>> lose = new AtomicReference<>();

  Relay() throws IOException {
    threads.execute(this::accept);
  }

  String uri() {
    return "http://127.0.0.1:" + listener.getLocalPort();
  }

  /** All that has passed, in the order of the answers. */
  List<Exchange> exchanges() {
    return List.copyOf(exchanges);
  }

  List<Exchange> exchanges(String method, String pathEnd) {
    return exchanges.stream().filter(e -> e.is(method, pathEnd)).toList();
  }

  void forget() {
    exchanges.clear();
  }

  /**
   * The first exchange from now on that matches is answered with 503 and Retry-After, although the
   * server has done what it was asked for: what a client sees of a proxy that gave up.
   */
  void loseAnswer(Predicate<Exchange> which) {
    lose.set(which);
  }

  private void accept() {
    while (true) {
      try {
        Socket client = listener.accept();
        sockets.add(client);
        threads.execute(() -> relay(client));
      } catch (IOException e) {
        return; // Closed.
      }
    }
  }

  /** Serves one connection of a client by one to the server, until either ends it. */
  private void relay(Socket client) {
    URI uri = URI.create(Clients.uri());
    try (client;
        Socket server = new Socket(uri.getHost(), uri.getPort())) {
      sockets.add(server);
      server.setSoTimeout(TIMEOUT_MILLIS);
      InputStream fromClient = new BufferedInputStream(client.getInputStream());
      InputStream fromServer = new BufferedInputStream(server.getInputStream());
      while (true) {
        Message request = read(fromClient, true);
        send(server, request.bytes());
        String[] words = request.first().split(" ");
        Message answer = read(fromServer, !words[0].equals("HEAD"));
        Exchange exchange = exchange(words, request, answer);
        exchanges.add(exchange);
        send(client, loses(exchange) ? LOST : answer.bytes());
      }
    } catch (IOException e) {
      // One of the two has closed its connection; the other sees it closed, too.
    }
  }

  private static Exchange exchange(String[] words, Message request, Message answer) {
    String[] target = words[1].split("\\?", 2);
    return new Exchange(
        words[0],
        target[0],
        target.length > 1 ? target[1] : "",
        request.headers(),
        status(answer.first()),
        answer.headers());
  }

  private boolean loses(Exchange exchange) {
    Predicate<Exchange> which = lose.get();
    return which != null && which.test(exchange) && lose.compareAndSet(which, null);
  }

  private static void send(Socket to, byte[] bytes) throws IOException {
    OutputStream out = to.getOutputStream();
    out.write(bytes);
    out.flush();
  }

  /** Reads one message; mayHaveBody is false for the answer to a HEAD. */
  private static Message read(InputStream in, boolean mayHaveBody) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    String first = line(in, bytes);
    List<String> headers = new ArrayList<>();
    for (String header = line(in, bytes); !header.isEmpty(); header = line(in, bytes)) {
      headers.add(header);
    }
    if (first.startsWith("HTTP/") && (status(first) == 204 || status(first) == 304)) {
      mayHaveBody = false;
    }
    if (mayHaveBody && value(headers, "Transfer-Encoding").isPresent()) {
      int chunk;
      do {
        chunk = Integer.parseInt(line(in, bytes).split(";")[0].trim(), 16);
        bytes.writeBytes(in.readNBytes(chunk));
        line(in, bytes);
      } while (chunk > 0);
    } else if (mayHaveBody) {
      int length = value(headers, "Content-Length").map(Integer::parseInt).orElse(0);
      bytes.writeBytes(in.readNBytes(length));
    }
    return new Message(first, headers, bytes.toByteArray());
  }

  /** Reads one line, keeps its bytes, and returns it without its end. */
  private static String line(InputStream in, ByteArrayOutputStream bytes) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int b = in.read(); ; b = in.read()) {
      if (b < 0) {
        throw new EOFException();
      }
      bytes.write(b);
      if (b == '\n') {
        return line.toString();
      }
      if (b != '\r') {
        line.append((char) b);
      }
    }
  }

  private static int status(String firstLine) {
    return Integer.parseInt(firstLine.split(" ")[1]);
  }

  private static Optional<String> value(List<String> headers, String name) {
    return headers.stream()
        .filter(header -> header.regionMatches(true, 0, name + ":", 0, name.length() + 1))
        .map(header -> header.substring(name.length() + 1).trim())
        .findFirst();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket socket : sockets) {
      socket.close();
    }
    threads.shutdown();
  }
}
