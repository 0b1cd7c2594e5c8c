// Package sample makes three small datasets to try things on: the orders of a shop,
// the tickets of its support, and the sensors of a building. They are the same every
// time, down to the byte.
//
// The numbers mean nothing. The package must not be given data of anybody's, and
// writes no file that is there with other content.
package sample
