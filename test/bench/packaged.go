package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// packagedCatalogs are catalogs that the bench can start: those that package registries have, and
// Landfast in another mode, by what -with calls them. Each function fetches one into the cache, starts it with its files in the
// site's directory, and says the base of its URLs.
var packagedCatalogs = map[string]func(ctx context.Context, s *site) (base string, p *process, err error){
	"iceberg-rest-fixture": startFixture,
	"nessie":               startNessie,
	onPostgres:             startOnPostgres,
	threeOnPostgres:        startThreeOnPostgres,
}

const (
	nessieVersion = "0.99.0" // the last one that Maven has a runner of

	fetchMax    = 10 * time.Minute // how long fetching one may take
	packagedMax = time.Minute      // how long one may take to be ready
)

// benchSources is the directory of this package, from where `make bench` runs.
const benchSources = "test/bench"

// cacheDirectory is where what was fetched is kept, as for `make conformance`.
func cacheDirectory() (string, error) {
	if dir := os.Getenv("LANDFAST_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "landfast"), err
}

// startPackaged starts a catalog and waits until its configuration is there.
func (s *site) startPackaged(ctx context.Context, name, address, configPath string, cmd *exec.Cmd) (*process, error) {
	log, err := s.path(name + ".log")
	if err != nil {
		return nil, err
	}
	if cmd.Dir, err = s.path(""); err != nil {
		return nil, err
	}
	p, err := start(cmd, log)
	if err != nil {
		return nil, err
	}
	p.address = address
	s.packaged = append(s.packaged, p)
	return p, p.awaitReady(ctx, configPath, packagedMax)
}

// end ends a process that is not ours, whatever status it ends with.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(endMax):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// startFixture starts the server that the Iceberg project tests its clients with,
// on SQLite and local files.
func startFixture(ctx context.Context, s *site) (string, *process, error) {
	const name = "iceberg-rest-fixture"
	java, err := findJava(ctx, 17)
	if err != nil {
		return "", nil, err
	}
	cache, err := cacheDirectory()
	if err != nil {
		return "", nil, err
	}
	dir, err := s.path(name)
	if err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return "", nil, err
	}
	sources, err := filepath.Abs(filepath.Join(benchSources, name))
	if err != nil {
		return "", nil, err
	}
	classpath := dir + ".classpath"
	if err := maven(ctx, filepath.Join(cache, "maven"), "-f", filepath.Join(sources, "pom.xml"),
		"dependency:build-classpath", "-Dmdep.outputFile="+classpath); err != nil {
		return "", nil, err
	}
	jars, err := os.ReadFile(classpath)
	if err != nil {
		return "", nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", string(jars),
		filepath.Join(sources, "Fixture.java"), portOf(address), dir)
	p, err := s.startPackaged(ctx, name, address, "/v1/config", cmd)
	return "http://" + address, p, err
}

// startNessie starts Nessie with its versions in memory. It keeps files nowhere but
// in object stores, so that it gets an S3 server on this machine.
func startNessie(ctx context.Context, s *site) (string, *process, error) {
	java, err := findJava(ctx, 21)
	if err != nil {
		return "", nil, err
	}
	cache, err := cacheDirectory()
	if err != nil {
		return "", nil, err
	}
	repository := filepath.Join(cache, "maven")
	if err := maven(ctx, repository, "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get",
		"-Dartifact=org.projectnessie.nessie:nessie-quarkus:"+nessieVersion+":jar:runner", "-Dtransitive=false"); err != nil {
		return "", nil, err
	}
	jar := filepath.Join(repository, "org/projectnessie/nessie/nessie-quarkus", nessieVersion, "nessie-quarkus-"+nessieVersion+"-runner.jar")
	endpoint, accessKey, secret, err := s.startS3(ctx, "bench")
	if err != nil {
		return "", nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	management, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	const s3 = "-Dnessie.catalog.service.s3.default-options."
	cmd := exec.Command(java,
		"-Dquarkus.http.host=127.0.0.1", "-Dquarkus.http.port="+portOf(address),
		"-Dquarkus.management.host=127.0.0.1", "-Dquarkus.management.port="+portOf(management),
		"-Dquarkus.http.access-log.enabled=false", "-Dquarkus.log.level=ERROR",
		"-Dnessie.version.store.type=IN_MEMORY",
		"-Dnessie.catalog.default-warehouse=bench", "-Dnessie.catalog.warehouses.bench.location=s3://bench/warehouse",
		s3+"endpoint="+endpoint, s3+"path-style-access=true", s3+"region=us-east-1",
		s3+"access-key=urn:nessie-secret:quarkus:bench.key", "-Dbench.key.name="+accessKey, "-Dbench.key.secret="+secret,
		"-jar", jar)
	p, err := s.startPackaged(ctx, "nessie", address, "/iceberg/v1/config", cmd)
	return "http://" + address + "/iceberg", p, err
}

// startS3 starts the S3 server of the tests with one bucket.
func (s *site) startS3(ctx context.Context, bucket string) (endpoint, accessKey, secret string, err error) {
	dir, err := s.path("s3")
	if err != nil {
		return "", "", "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "buckets", bucket), 0o777); err != nil {
		return "", "", "", err
	}
	cmd := exec.Command("bash", "test/s3server/start.sh", dir)
	life, err := cmd.StdinPipe() // it ends when this does
	if err != nil {
		return "", "", "", err
	}
	stdout, w, err := os.Pipe()
	if err != nil {
		return "", "", "", err
	}
	defer stdout.Close()
	cmd.Stdout = w
	p, err := start(cmd, dir+".log")
	w.Close()
	if err != nil {
		return "", "", "", err
	}
	s.packaged = append(s.packaged, p)
	stop := context.AfterFunc(ctx, func() { _ = life.Close() })
	defer stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 {
		return "", "", "", fmt.Errorf("the S3 server did not start: %q, %v\n%s", line, err, p.logTail())
	}
	return fields[0], fields[1], fields[2], nil
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// maven runs Maven with a repository of what it fetched.
func maven(ctx context.Context, repository string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", append([]string{"-B", "-q", "-Dmaven.repo.local=" + repository}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%.2000s", cmd, err, out)
	}
	return nil
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava is a Java of at least a version: that of the path, or one of those that
// Linux systems install beside each other.
func findJava(ctx context.Context, version int) (string, error) {
	installed, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	if err != nil {
		return "", err
	}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		installed = append([]string{filepath.Join(home, "bin", "java")}, installed...)
	}
	for _, java := range append([]string{"java"}, installed...) {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, java, "-version")
		cmd.Stderr = &out
		if err := cmd.Run(); err != nil {
			continue
		}
		if m := javaVersion.FindSubmatch(out.Bytes()); m != nil {
			if n, err := strconv.Atoi(string(m[1])); err == nil && n >= version {
				return java, nil
			}
		}
	}
	return "", fmt.Errorf("no Java of version %d or later is installed", version)
}
