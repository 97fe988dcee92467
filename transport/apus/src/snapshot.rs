//! Snapshots of a process's counters by name, which can be stored, compared and added.
//!
//! [`EndpointSnapshot::new`] names the counters of one endpoint. With the feature `introspection`,
//! `introspection::own_snapshot` returns the counters of all endpoints of this process, and
//! `introspection::Process::snapshot` the counters of another process.
//!
//! ```
//! use apus::Endpoint;
//! use apus::snapshot::EndpointSnapshot;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = Endpoint::bind("127.0.0.1:0")?;
//! # let address = server.local_addr();
//! # std::thread::spawn(move || while let Ok(request) = server.recv_request() { let _ = request.reply("HELLO"); });
//! let client = Endpoint::client()?;
//! let named = || EndpointSnapshot::new(client.local_addr(), &client.metrics());
//! let before = named();
//! client.call(address, "hello")?;
//! let change = named().since(&before);
//! assert_eq!(change.counter("client_responses_done"), 1);
//! # Ok(())
//! # }
//! ```

pub use apus_observe::snapshot::*;
