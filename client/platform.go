package client

import "github.com/cove-sandbox/cove"

// direct is a platform whose every call is a request of c.
type direct struct{ c *Client }

func (d direct) Sessions() cove.Sessions             { return sessions(d) }
func (d direct) Processes(id cove.ID) cove.Processes { return processes{d.c, id} }
func (d direct) Files(id cove.ID) cove.Files         { return files{d.c, id} }
func (d direct) Contexts(id cove.ID) cove.Contexts   { return contexts{d.c, id} }
func (d direct) Ports(id cove.ID) cove.Ports         { return ports{d.c, id} }
func (d direct) Trials(id cove.ID) cove.Trials       { return trials{d.c, id} }
func (d direct) Snapshots() cove.Snapshots           { return snapshots(d) }
func (d direct) Volumes() cove.Volumes               { return volumes(d) }
func (d direct) Runs() cove.Runs                     { return runs(d) }
func (d direct) Datasets() cove.Datasets             { return datasets(d) }
func (d direct) Chats() cove.Chats                   { return chats(d) }
func (d direct) Templates() cove.Templates           { return templates(d) }
func (d direct) Links() cove.Links                   { return links(d) }
func (d direct) Admin() cove.Admin                   { return admin(d) }
func (d direct) Nodes() cove.Nodes                   { return nodes(d) }

// Sessions implements [cove.Platform].
func (c *Client) Sessions() cove.Sessions { return c.platform.Sessions() }

// Processes implements [cove.Platform].
func (c *Client) Processes(id cove.ID) cove.Processes { return c.platform.Processes(id) }

// Files implements [cove.Platform].
func (c *Client) Files(id cove.ID) cove.Files { return c.platform.Files(id) }

// Contexts implements [cove.Platform].
func (c *Client) Contexts(id cove.ID) cove.Contexts { return c.platform.Contexts(id) }

// Ports implements [cove.Platform].
func (c *Client) Ports(id cove.ID) cove.Ports { return c.platform.Ports(id) }

// Trials implements [cove.Platform].
func (c *Client) Trials(id cove.ID) cove.Trials { return c.platform.Trials(id) }

// Snapshots implements [cove.Platform].
func (c *Client) Snapshots() cove.Snapshots { return c.platform.Snapshots() }

// Volumes implements [cove.Platform].
func (c *Client) Volumes() cove.Volumes { return c.platform.Volumes() }

// Runs implements [cove.Platform].
func (c *Client) Runs() cove.Runs { return c.platform.Runs() }

// Datasets implements [cove.Platform].
func (c *Client) Datasets() cove.Datasets { return c.platform.Datasets() }

// Chats implements [cove.Platform].
func (c *Client) Chats() cove.Chats { return c.platform.Chats() }

// Templates implements [cove.Platform].
func (c *Client) Templates() cove.Templates { return c.platform.Templates() }

// Links implements [cove.Platform].
func (c *Client) Links() cove.Links { return c.platform.Links() }

// Admin implements [cove.Platform].
func (c *Client) Admin() cove.Admin { return c.platform.Admin() }

// Nodes implements [cove.Platform].
func (c *Client) Nodes() cove.Nodes { return c.platform.Nodes() }
