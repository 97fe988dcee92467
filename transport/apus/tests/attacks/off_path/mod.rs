//! Off-path attackers: they send UDP packets with any source address, and see none that is not sent
//! to them.
//!
//! They know the addresses and ports of both ends. Where it makes the attack stronger, they also
//! know the ids of calls, and all of a session but one bit, unlike real attackers.

mod calls;
mod control_packets;
mod first_contacts;
mod flood;
