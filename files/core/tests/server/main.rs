//! The server core, with fake clients and a small store in memory.

mod batches;
mod copies;
mod hostile;
mod leases;
mod locks;
mod orphans;
mod reads;
mod restart;
mod rights;
mod sessions;
mod store;
mod world;
