//! A page of memory that any number of processes share, under a name.
//!
//! Pairs have separate memory; a page is for values that all processes of a group publish for each
//! other. One of them, the *distributor*, listens under the name and hands the page out. The name
//! is an abstract one and disappears with the distributor, however it ends. Each of the others has
//! a connection to the distributor. When it ends, the process takes the name for the page that it
//! has, or gets the page of a process that was faster.
//!
//! The words of the page are whatever the processes write. A process that uses them must survive
//! any value.

mod distribution;
mod membership;
mod shared_page;

pub use membership::Membership;
pub use shared_page::SharedPage;
