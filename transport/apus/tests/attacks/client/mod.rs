//! Clients, and servers that are called: attackers with an address of their own, which receive what is sent to it.

mod attacker;
mod exhaustion;
mod secrets;
mod splitmix;
