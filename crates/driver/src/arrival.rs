//! What does a driver hand to the engine?

use std::net::{IpAddr, SocketAddr};

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Who sent it, as the packet claims. IPv4 peers of an IPv6 socket appear as IPv4 addresses.
    pub from: SocketAddr,
    /// The local address it was sent to. Only known, and only needed, if the driver listens on all
    /// addresses of the host: answers must leave from there.
    pub to: Option<IpAddr>,
    /// Congestion mark of the network.
    pub ecn: Ecn,
    /// Header and payload, without IP and UDP headers.
    pub packet: &'a [u8],
}

/// The two ECN bits of an IP packet. Source: RFC 3168 section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable, or not known.
    #[default]
    NotCapable,
    /// ECN-capable, no congestion met.
    Capable,
    /// A switch marked the packet: congestion experienced.
    CongestionExperienced,
}

impl Ecn {
    /// The mark in the low two bits of a TOS or traffic class byte.
    #[must_use]
    pub const fn from_traffic_class(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotCapable,
            0b11 => Self::CongestionExperienced,
            _ => Self::Capable,
        }
    }
}
