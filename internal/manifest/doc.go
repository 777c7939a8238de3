// Package manifest reads what Iceberg's manifest lists and manifests name: the
// files below a snapshot.
//
// A snapshot names one manifest list ([Manifests]), a list names manifests, and a
// manifest names data files and delete files ([Files]). Both are Avro object
// container files whose schema stands in their head, so that what is read here is
// alike in format versions 1, 2 and 3: everything but the locations is passed over.
// A deletion vector is named by the location of the Puffin file that holds it.
//
// The bytes may come from anybody. What is damaged, encrypted, or not what it should be
// is an error after the locations that came before it, and no input takes much more
// memory than itself and one block of [blockBytesMax] bytes.
//
// Everything here is pure and safe for concurrent use.
package manifest
