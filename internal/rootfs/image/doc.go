// Package image unpacks the images of containers into trees: archives that docker
// save wrote, and OCI layouts, as directories or in a tar. Whatever an image says is
// hostile: digests are compared, layers go through a [rootfs.Unpacker], and
// everything that is read has a bound.
//
// It must not fetch anything, must not write outside of the tree that it is given,
// and must not run any program but docker, which it asks to build a Dockerfile and
// never needs otherwise.
package image
