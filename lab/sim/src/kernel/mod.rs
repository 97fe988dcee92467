//! Model of a host that runs the Linux kernel's Homa module.
//!
//! It follows the module's documentation and recorded packets, and shares no code with the protocol
//! core, so that wrong assumptions of either surface when the two communicate. It has two uses:
//! hosts of a simulated fabric, mixed with hosts that run apus in the kernel profile; and
//! verification of the packets of apus, because [`Module::handle_packet`] returns for each packet
//! whether the module would accept it ([`Objection`]).
//!
//! ```text
//!   rx         effect of each packet, and objections to it             incoming   the list of gaps
//!   tx         choice and headers of packets                           outgoing   segments that never change
//!   timer      ticks of a millisecond: silence, RESEND, NEED_ACK       grants     SRPT, windows, the oldest
//! ```
//!
//! Source: docs/reference/homa-module.md, *Packets* to *Unscheduled bytes and cutoffs*, and *Rules
//! for peers*. The numbers are the module's defaults.
//!
//! # Not modelled
//!
//! Exhaustion of receive buffers, the pacer, GSO and GRO, more than two ports, fairness of grants
//! over peers. An application of the module cannot cancel a request.

mod event;
mod grants;
mod incoming;
mod module;
mod objection;
mod outgoing;
mod packet;
mod parameters;
mod peer;
mod rpc;
mod rx;
#[cfg(test)]
mod tests;
mod timer;
mod tx;

pub use event::ModuleEvent;
pub use module::Module;
pub use objection::Objection;
pub use packet::ModulePacket;
pub use parameters::{CLIENT_PORT, LONGEST, UNSCHEDULED};
pub use rpc::ModuleRpcKey;
