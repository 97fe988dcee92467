//! The file system of `examples/memory`, mounted for real.
//!
//! A test that cannot mount prints `SKIPPED: …` and passes.

mod files;
mod interrupts;
mod methods;
mod notifications;
mod world;

#[path = "../../examples/memory/attributes.rs"]
mod attributes;
#[path = "../../examples/memory/locks.rs"]
mod locks;
#[path = "../../examples/memory/names.rs"]
mod names;
#[path = "../../examples/memory/nodes.rs"]
mod nodes;
#[path = "../../examples/memory/server.rs"]
mod server;
