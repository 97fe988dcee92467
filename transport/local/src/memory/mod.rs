//! Memory that two processes share: its layout, its file, and access to it.

pub(crate) mod layout;
#[expect(unsafe_code, reason = "maps the file, and copies into and out of the mapping")]
#[cfg(not(apus_local_loom))]
mod mapping;
#[cfg(apus_local_loom)]
#[expect(unsafe_code, reason = "loom's cells are not `Sync`")]
#[path = "model.rs"]
mod mapping;
#[cfg(not(apus_local_loom))]
pub(crate) mod segment;

pub(crate) use mapping::Memory;
