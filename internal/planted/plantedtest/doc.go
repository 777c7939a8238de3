// Package plantedtest shows that tests see mistakes which are made on purpose, in builds with the tag `planted`.
package plantedtest
