//! Attacks of clients on a server, and of servers on a client: each was shown to work on an earlier version
//! (`docs/security.md`), and fails without its mend.

mod answers;
mod claims;
mod flood;
mod grants;
mod hosts;
mod memory;
mod responses;
mod service;
mod world;
