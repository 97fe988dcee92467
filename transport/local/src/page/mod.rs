//! A page of memory that any number of processes share, under a name.
//!
//! Pairs have memory of their own; this is for facts that all processes of a group publish for each other. One of them, the
//! *distributor*, listens under the name and hands the page out. The name is an abstract one and disappears with the distributor,
//! however it ends. Each of the others has a connection to the distributor, whose end tells it that the distributor has gone, and then
//! takes the name for the page that it has already, or gets the page of the process that was faster.
//!
//! The words of the page are whatever the processes write. A process that uses them must survive any value.

mod distribution;
mod membership;
mod shared_page;

pub use membership::Membership;
pub use shared_page::SharedPage;
