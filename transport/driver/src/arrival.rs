//! Received packets, as a driver passes them to the engine.

use std::net::{IpAddr, SocketAddr};

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Sender of the packet, as the packet claims. IPv4 peers of an IPv6 socket appear as IPv4
    /// addresses.
    pub from: SocketAddr,
    /// Local address that the packet was sent to. Only known, and only needed, if the driver
    /// listens on all addresses of the host: responses must leave from this address.
    pub to: Option<IpAddr>,
    /// Congestion mark of the network.
    pub ecn: Ecn,
    /// Header and payload, without IP and UDP headers.
    pub packet: &'a [u8],
}

/// The two ECN bits of an IP packet. Source: RFC 3168 section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable, or unknown.
    #[default]
    NotCapable,
    /// ECN-capable, no congestion experienced.
    Capable,
    /// Congestion experienced: a switch has marked the packet.
    CongestionExperienced,
}

impl Ecn {
    /// Returns the mark in the low two bits of a TOS or traffic class byte.
    #[must_use]
    pub const fn from_traffic_class(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotCapable,
            0b11 => Self::CongestionExperienced,
            _ => Self::Capable,
        }
    }
}
