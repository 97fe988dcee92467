//! The board of all processes of a host: a page of shared memory ([`apus_local::Membership`]).
//!
//! A transport has a line of the page while it is open. A line counts while its transport has been
//! polled within the last half second, so a process that dies, or is stopped, gives its share back
//! within that time.
//!
//! Any process that may map the page can write anything to it. So every value is an estimate, as
//! within a process; values read are bounded here, and the protocol keeps a floor in any case
//! (GRANT-14, GRANT-17, SEND-12). A transport whose line was claimed by another one claims a new
//! line.

#[cfg(not(apus_hostgroup_loom))]
mod group;
mod line;
#[cfg(all(test, apus_hostgroup_loom))]
mod model;
#[cfg(not(apus_hostgroup_loom))]
mod place;

#[cfg(not(apus_hostgroup_loom))]
pub use group::HostGroup;
#[cfg(not(apus_hostgroup_loom))]
pub use place::HostPlace;
