//! Snapshots of a process's counters by name, which can be stored, compared and added.
//!
//! [`crate::Metrics`] has a field for each counter. A [`Snapshot`] has their names, so that it can
//! be written to a file, read by another version of apus, and subtracted from a later one.
//! [`families()`] describes every name.
//!
//! A name such as `packets_sent.data` belongs to the family `packets_sent`, whose members differ in
//! the packet type.

mod application;
mod buckets;
mod canaries;
mod endpoint;
mod exemplar;
mod families;
#[cfg(any(feature = "metrics", feature = "prometheus"))]
mod members;
mod process;
mod values;

pub use application::ApplicationFamily;
pub use buckets::Buckets;
pub use canaries::{CANARIES, Canary};
pub use endpoint::EndpointSnapshot;
pub use exemplar::Exemplar;
pub use families::{Family, FamilyKind, families};
#[cfg(any(feature = "metrics", feature = "prometheus"))]
pub(crate) use members::{MemberValue, members};
pub use process::Snapshot;
