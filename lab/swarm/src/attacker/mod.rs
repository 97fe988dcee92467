//! Attackers: the programs of hostile hosts, one file for each position.
//!
//! An attacker's type contains only the information available at its position: [`Public`] for all,
//! and for some a tap ([`taps`]) or the packets sent to their own addresses. No attacker has a
//! reference to a scenario, to another host or to the observer.
//!
//! Attackers use the udp profile. The kernel profile has no sessions: it trusts every host of the
//! network.

mod abilities;
mod client;
mod contract;
mod forge;
mod informed;
mod kept;
mod off_path;
mod on_link;
pub(crate) mod on_path;
mod prediction;
mod public;
pub(crate) mod taps;

use crate::attack::{Attack, Position};
use client::Client;
pub(crate) use contract::Attacker;
use informed::Informed;
use off_path::OffPath;
use on_link::OnLink;
pub(crate) use public::Public;
use taps::Taps;

/// Returns the attacker of an attack.
pub(crate) fn attacker(attack: &Attack, public: Public, taps: &Taps) -> Box<dyn Attacker> {
    match attack.position {
        Position::OffPath => Box::new(OffPath::new(public)),
        Position::Informed => Box::new(Informed::new(public, taps.ids())),
        Position::Client => Box::new(Client::new(public)),
        Position::OnLink => Box::new(OnLink::new(taps.link())),
    }
}
