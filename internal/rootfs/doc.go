// Package rootfs keeps templates: what sandboxes have in them beside their
// workspace. A template is the host's own programs, a layer over them, or a tree
// of its own.
//
// A store is a directory:
//
//	names/NAME.json           what the shared template NAME is: a [Manifest]
//	owned/TENANT/NAME.json    what TENANT/NAME is, a template of that tenant alone
//	owned/TENANT/DIGEST.left  the manifest of a tree that was the tenant's and is still in use
//	trees/DIGEST/             the files, named after what is in them
//	trees/DIGEST.use          locked by processes that handed the tree out
//	staging/                  what is being built, and what is being removed
//	lock                      held for a moment by whoever changes names
//
// Trees are never changed: a build makes another one, and moves a name. Several
// processes may use one store at once. A tree goes when no name leads to it and
// nobody uses it.
//
// The digest is over names, kinds, modes and content. It is made when a tree is put
// into the store, and compared by [Store.Verify]. Reading it all before each use
// would cost seconds, so a [Manifest] also has a seal over what the file system
// says about each file, its time of change included. [Store.Use] compares the
// seal, and reads everything where that differs.
//
// What comes from an image or a package is hostile. It gets into a tree only by an
// [Unpacker], which makes nothing but directories, files and links, resolves links
// as if the tree were the root of everything, and has bounds.
//
// This package must not fetch anything, and must not run any program: a template's
// own programs run in sandboxes.
package rootfs
