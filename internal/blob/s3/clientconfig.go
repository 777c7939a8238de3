package s3

import (
	"context"
	"strconv"
	"strings"

	"github.com/landfast/landfast/internal/blob"
)

// ClientConfig is what Iceberg's clients must know to reach the files under a root,
// in the names of the REST catalog's specification (LoadTableResult.config). It has
// no credentials. It is empty for a root that is not on S3.
func (s *Store) ClientConfig(ctx context.Context, root blob.Root) map[string]string {
	if !strings.HasPrefix(root.URI, scheme) {
		return nil
	}
	settings := s.settings(root)
	config := map[string]string{"s3.path-style-access": strconv.FormatBool(settings.pathStyle)}
	if settings.endpoint != "" {
		config["s3.endpoint"] = settings.endpoint
	}
	region := settings.region
	if c, err := s.clients.of(ctx, settings); region == "" && err == nil {
		region = c.api.Options().Region // as the environment says
	}
	if region != "" {
		config["s3.region"], config["client.region"] = region, region
	}
	return config
}
