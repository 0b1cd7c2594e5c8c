// Package audit keeps the journal of a node: an append-only, hash-chained
// record of what was about to be done, how it went, and what was refused. It
// must not decide anything, must not change or drop a line once written, and
// must not know what the events mean.
//
// # Files
//
// A journal is a folder and two files beside it. With the folder at
// /var/lib/cove/journal they are:
//
//	journal/journal-00000001.jsonl   the lines, in numbered segments
//	journal/lock                     locked by the one process that writes
//	journal.key                      the node's key, mode 0600, 64 hex digits
//	journal.anchor                   the newest known end of the journal
//
// A segment is closed when the next line would make it longer than
// Config.SegmentBytes and the disk has room for the next one; a longer line has a segment to itself. Numbers start at 1
// and have no gaps. Only the last segment may be empty.
//
// # Lines
//
// A line is one JSON object: the fields of [cove.Event] in the order of their
// declaration, then
//
//	"anchored"  a sequence number whose anchor was on the disk when the line was
//	            written; only where it is higher than in the lines before
//	"prev"      "sum" of the line before; 64 zeros in line 1
//	"sum"       HMAC-SHA-256, in hex, of all bytes of the line before ,"sum":
//
// Sequence numbers start at 1 and have no gaps, and the chain goes on from the
// last line of a segment to the first of the next. The sum is of the bytes, so
// that nothing needs to be encoded again to check it, and covers "prev", so that
// every line can be checked alone: a checker that meets a bad line can go on.
//
// Three keys are derived from the node's key as HMAC-SHA-256(key, purpose): one
// for the chain, one for anchors, one for [Journal.Digest]. Whoever lacks the key
// can neither change a line nor append one that passes. Whoever has the key, which
// is root and the user that runs Cove, can.
//
// # Writing
//
// Each line is one write(2) to a file opened for appending. A line is promised
// when Append returns: against the death of the process always, against the
// death of the machine after a sync. A sync is shared by all who wait for one;
// lines that nobody waits for are synced within Config.SyncInterval.
//
// A line for which the disk has no room is cut away, and the next line is tried
// again. So that the end of what is under way can be written on a full disk,
// Config.Reserve is set aside in the segment that is written, behind its last line.
// The caller asks [Journal.Room] before it begins something new, and leaves it when
// the reserve is not whole. Where a full disk has no room for a new segment, the old
// one goes on.
//
// After another error of a write, or any of a sync, the journal is broken. It takes no
// more lines until it is opened again, because what the kernel still holds after such
// an error is unknown.
//
// It is broken too when its files are no longer where they were: lines written
// to a file without a name would be found by nobody. Before each durable line the
// open segment must still have a name and the length that was written; with each
// sync, which is within SyncInterval of any line, the names of the segment and of
// the anchor must still lead to the open files. So a durable line is never
// promised in a file that is gone, and lines that nobody waits for are taken for
// at most a SyncInterval after the file went. [Journal.Err] looks at once.
//
// # Opening
//
// Open reads the anchor, checks the anchored line and all that follow it, and
// goes on from there; lines before the anchor are checked by [Verify] only. Bytes
// after the last newline are a line whose write was cut off by a crash. Nobody
// was told that it was written, so it is cut away and a line of kind
// "journal.recovered" says how many bytes that was; Config.Logger is told the
// same, with how the line began. Anything else that is wrong
// makes Open refuse.
//
// # The anchor
//
// A chain alone does not show that its end was cut off. The anchor is one record
// of 512 bytes, overwritten in place after every sync of the lines: the number,
// the sum and the place of the last synced line, under a sum of its own. It is
// itself synced every Config.AnchorInterval, when a segment is closed, and on
// Open and Close. With Config.Brief it is synced after the first lines of a
// process instead, and Close leaves the last lines and the anchor to the kernel:
// they are then as after the death of the process, with nothing lost, for the
// anchor tells of the last line.
//
// Beside that it names the last line that was written, synced or not: within
// 10 ms of any line it is overwritten with the number and the sum of the last
// one, without a sync. That survives the death of the process. It may not survive
// that of the machine in order, for the disk may get the anchor before the lines;
// so the record has the name that the kernel gave this start of the machine, and
// the last written line counts for as long as that start goes on. Afterwards the
// last synced line does. Below, "the anchor" is whichever counts.
//
// Found for certain: a change of any byte of any line; a line removed, doubled,
// moved or added, in any place before the anchor; a segment removed or renamed;
// the end cut off anywhere before the anchor; an anchor removed, changed, taken
// from another journal, or put back to a state older than the newest "anchored".
//
// Not found: whole lines cut from the end of what follows the anchor. After a
// Close that is nothing. After the death of the process it is what was written in
// its last 10 ms, and once the machine has been started again, or where the
// kernel gives its starts no name, what was not synced: the lines of the last
// SyncInterval for which nobody waited. A durable line whose Append returned is
// always before the anchor while the machine runs, and before it after a crash of
// the machine unless the anchor's own last sync is older, by AnchorInterval at
// most. Report.Unanchored counts the lines that are in this state now.
//
// Nor is an attacker found who puts back an older copy of both the folder and the
// anchor. Copy the anchor to another machine now and then, and that is found too:
// the anchored line must still be there.
package audit
