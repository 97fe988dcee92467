//! Attacks of clients on a server, and of servers on a client: each was shown to work on an earlier version
//! (`docs/security.md`), and fails without its mend.

mod claims;
mod flood;
mod grants;
mod hosts;
mod world;
