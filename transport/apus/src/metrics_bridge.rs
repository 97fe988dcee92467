//! Counters for the recorder that a program has installed for the `metrics` facade.
//!
//! A [`Publisher`] reports the changes since its last report. The program decides when: call it
//! every few seconds, for example.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = apus::Endpoint::bind("0.0.0.0:4000")?;
//! let mut publisher = apus::metrics_bridge::Publisher::default();
//! loop {
//!     publisher.publish(endpoint.local_addr(), &endpoint.metrics());
//!     std::thread::sleep(std::time::Duration::from_secs(10));
//! }
//! # }
//! ```
//!
//! Counters and gauges are named `apus.NAME` and labelled with the endpoint's address as `endpoint`
//! and with the family's label. Durations of RPCs have OpenTelemetry's names,
//! `rpc.client.call.duration` and `rpc.server.call.duration`, in seconds. They come from a
//! histogram: each is reported as the upper bound of its bucket, at most 12.5 % too long.

pub use apus_observe::metrics_bridge::Publisher;
