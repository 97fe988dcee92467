//! Behaviour as text: commands, packets and time go in, packets and events come out.
//!
//! Every test hands a script to [`script::run`] and holds the transcript against a snapshot. The
//! language is described in [`script`]. Tests name the facts of `docs/reference` and the
//! requirements of `docs/spec` that they are about.

mod script;

mod acks;
mod admission;
mod arrears;
mod bad_packets;
mod calls;
mod caps;
mod data;
mod empty_messages;
mod first_calls;
mod grants;
mod host_restarts;
mod kernel_profile;
mod older_versions;
mod priorities;
mod reports;
mod resends;
mod secrets;
mod senders;
mod sending;
mod sessions;
mod shutdown;
mod spraying;
mod timeouts;
mod unknown_rpcs;
mod watched_clients;
