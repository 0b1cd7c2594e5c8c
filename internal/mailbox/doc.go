// Package mailbox is a way to a sandbox's agent by questions and answers, for
// sandboxes in which a program can be run and its output read when it has ended,
// and nothing else: no input, no stream, and an answer that may get lost.
//
// One process inside, the box, starts the agent, opens doors to it and holds the
// sandbox's end of its link: a stream of bytes each way. Whoever is outside runs this
// executable with one question at a time:
//
//	DIR open LINK USER     makes a link, and ends the one before; starts the box, if
//	                       there is none, whose agent is USER's
//	DIR give LINK AT DATA  hands in bytes, of which the first is number AT
//	DIR take LINK AT MS    hands out bytes from number AT on, and waits for some so
//	                       many milliseconds; what is before AT is let go
//	DIR close LINK         ends the link, and with it what the host had begun
//
// Every question can be asked again: bytes have numbers, links have names drawn by
// lot. So an answer that was lost or garbled costs a question more and nothing
// else. The answer is one line, [Answer], with a checksum. A link that nobody asks
// about for [Lease] ends, and with it all programs that are not kept: a host that is
// gone leaves nothing else running there.
//
// DIR belongs to whoever asks, and nobody else may enter it. Two more words are for
// sandboxes that do have streams, where doors can be opened from outside: start USER
// starts an agent, and version says that this executable can run there. The package
// must not understand what goes through the link, and must stay small: it is in the
// executable that is put into sandboxes.
package mailbox
