//! Clients, and servers that are called: attackers with their own address, which receive the
//! packets sent to it.

mod attacker;
mod exhaustion;
mod secrets;
mod splitmix;
