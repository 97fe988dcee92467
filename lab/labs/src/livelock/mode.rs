//! Modes of the router: when it receives.

use std::fmt;
use std::str::FromStr;

use ::apus::overload::{CoreShare, Feedback, Quotas};
use serde::{Deserialize, Serialize};

use super::priority::Priority;
use apus_testbed::error::Error;

/// How a router divides its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Input preempts everything else.
    Interrupt,
    /// A loop receives until the input is empty, then sends.
    PollNoQuota,
    /// A loop receives and sends in turn, at most this number of packets each.
    PollQuota(usize),
    /// The loop with the quota [`Mode::QUOTA`]; it stops receiving while the filter's queue is
    /// long.
    PollFeedback,
    /// `PollFeedback`; it also stops receiving when it has used this percentage of the core in a
    /// period of 10 ms.
    Share(u32),
    /// The receive path of apus: the defaults of [`apus::overload`](::apus::overload), without
    /// privileges.
    Apus,
}

impl Mode {
    /// The recommendation of Mogul & Ramakrishnan: 10 to 20 packets.
    pub const QUOTA: usize = 10;

    /// Returns the modes of the experiment.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut modes = vec![Self::Interrupt, Self::PollNoQuota];
        modes.extend([5, Self::QUOTA, 20, 100].map(Self::PollQuota));
        modes.push(Self::PollFeedback);
        modes.push(Self::Apus);
        modes.extend([25, 50, 75, 100].map(Self::Share));
        modes
    }

    /// Returns a description.
    pub(super) fn words(self) -> String {
        match self {
            Self::Interrupt => "input preempts everything else, as interrupts of a network card do, and waits in queues \
                                of 50 packets between the stages"
                .to_owned(),
            Self::PollNoQuota => "a loop receives until the input is empty, then sends".to_owned(),
            Self::PollQuota(quota) => {
                format!("a loop receives and sends in turn, at most {quota} packets each")
            }
            Self::PollFeedback => format!(
                "the loop with a quota of {}; it stops receiving while the filter's queue is long: from three quarters of \
                 its 32 packets down to one quarter",
                Self::QUOTA
            ),
            Self::Share(percent) => format!(
                "poll-feedback; it also stops receiving when it has used {percent} % of the core in a period of 10 ms"
            ),
            Self::Apus => "the rules of the engine of apus with their defaults: quotas and feedback, in an ordinary \
                           thread without privileges"
                .to_owned(),
        }
    }

    /// Returns the policy of a loop; `None` for interrupts. `filter` is the bound of the filter's
    /// queue.
    pub(super) fn policy(self, filter: usize) -> Option<Policy> {
        let polling = |receive, transmit| Policy {
            quotas: Quotas { receive, transmit, ..Quotas::NONE },
            sent_in: SentIn::Packets,
            feedback: None,
            share: None,
            // Above the filter and all other programs, like the paper's kernel thread.
            priority: Priority::RealTime(SOFTWARE),
        };
        let feedback = Some(Feedback::new(filter));
        let quota = polling(Self::QUOTA, Self::QUOTA);
        Some(match self {
            Self::Interrupt => return None,
            Self::PollNoQuota => polling(Quotas::UNLIMITED, Quotas::UNLIMITED),
            Self::PollQuota(quota) => polling(quota, quota),
            Self::PollFeedback => Policy { feedback, ..quota },
            Self::Share(percent) => {
                Policy { feedback, share: Some(CoreShare::of_percent(percent)), ..quota }
            }
            Self::Apus => Policy {
                quotas: Quotas::default(),
                sent_in: SentIn::Bytes,
                feedback,
                priority: Priority::Ordinary,
                ..quota
            },
        })
    }
}

/// Level of threads that stand for the interrupts of network cards.
pub(super) const HARDWARE: u8 = 30;

/// Level of threads that stand for software interrupts and kernel threads.
pub(super) const SOFTWARE: u8 = 20;

/// The policy of a polling loop.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) quotas: Quotas,
    pub(super) sent_in: SentIn,
    pub(super) feedback: Option<Feedback>,
    pub(super) share: Option<CoreShare>,
    pub(super) priority: Priority,
}

/// The unit of the quota of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentIn {
    Packets,
    Bytes,
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt => formatter.pad("interrupt"),
            Self::PollNoQuota => formatter.pad("poll-no-quota"),
            Self::PollQuota(Self::QUOTA) => formatter.pad("poll-quota"),
            Self::PollQuota(quota) => write!(formatter, "poll-quota={quota}"),
            Self::PollFeedback => formatter.pad("poll-feedback"),
            Self::Share(percent) => write!(formatter, "share={percent}"),
            Self::Apus => formatter.pad("apus"),
        }
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let number = |value: &str| value.parse::<u32>().ok();
        let mode = match (name, value) {
            ("interrupt", None) => Some(Self::Interrupt),
            ("poll-no-quota", None) | ("poll-quota", Some("none")) => Some(Self::PollNoQuota),
            ("poll-quota", None) => Some(Self::PollQuota(Self::QUOTA)),
            ("poll-quota", Some(value)) => number(value)
                .filter(|quota| (1..=100_000).contains(quota))
                .map(|quota| Self::PollQuota(quota as usize)),
            ("poll-feedback", None) => Some(Self::PollFeedback),
            ("share", Some(value)) => {
                number(value).filter(|percent| (1..=100).contains(percent)).map(Self::Share)
            }
            ("apus", None) => Some(Self::Apus),
            _ => None,
        };
        mode.ok_or_else(|| Error::Option {
            option: "modes",
            problem: format!(
                "`{text}` is none of interrupt, poll-no-quota, poll-quota, poll-quota=PACKETS, \
                 poll-feedback, share=PERCENT and apus; try poll-quota=20"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_modes_agree() {
        for mode in Mode::all() {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        assert_eq!("poll-quota=none".parse::<Mode>().unwrap(), Mode::PollNoQuota);
        assert_eq!("poll-quota=10".parse::<Mode>().unwrap().to_string(), "poll-quota");
        for wrong in ["", "poll", "poll-quota=0", "share", "share=101", "share=x", "apus=1"] {
            let said = wrong.parse::<Mode>().unwrap_err().to_string();
            assert!(said.contains("try poll-quota=20"), "{said}");
        }
    }

    #[test]
    fn only_apus_needs_no_privileges() {
        for mode in Mode::all() {
            let ordinary = mode.policy(32).is_some_and(|it| it.priority == Priority::Ordinary);
            assert_eq!(ordinary, mode == Mode::Apus, "{mode}");
        }
    }
}
