//! Which faults, and how many?

/// What a probability of one is: all probabilities here are parts per million, so that a
/// configuration is exact and the same on every machine.
pub const PER_MILLION: u32 = 1_000_000;

/// What happens to packets of one direction.
///
/// Probabilities are per packet, in parts per million, and independent of each other. A packet goes
/// through loss, corruption, duplication and reordering in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Faults {
    /// Probability that a packet is lost.
    pub loss: u32,
    /// Probability that a packet is followed by a copy of itself.
    pub duplication: u32,
    /// Probability that a packet is held back while [`Faults::hold`] later ones pass.
    pub reordering: u32,
    /// Packets that overtake a packet that is held back; at least 1 if there is reordering. Fewer
    /// do if no more are there.
    pub hold: u32,
    /// Probability that one bit of a packet, any, is flipped.
    pub corruption: u32,
    /// Probability that a packet is the first of [`Faults::burst_length`] consecutive ones that are
    /// lost, as when a queue overflows or a link fails over.
    pub burst_loss: u32,
    /// Packets of a burst loss; at least 1 if there is burst loss.
    pub burst_length: u32,
}

impl Faults {
    /// No faults at all.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            loss: 0,
            duplication: 0,
            reordering: 0,
            hold: 0,
            corruption: 0,
            burst_loss: 0,
            burst_length: 0,
        }
    }

    /// Checks the limits that the fields' documentation gives.
    ///
    /// # Errors
    ///
    /// The first field that is outside them.
    pub fn validate(&self) -> Result<(), FaultError> {
        let probabilities = [
            ("loss", self.loss),
            ("duplication", self.duplication),
            ("reordering", self.reordering),
            ("corruption", self.corruption),
            ("burst_loss", self.burst_loss),
        ];
        for (field, value) in probabilities {
            if value > PER_MILLION {
                return Err(FaultError::MoreThanCertain { field, value });
            }
        }
        if self.reordering > 0 && self.hold == 0 {
            return Err(FaultError::Missing { field: "hold", needed_by: "reordering" });
        }
        if self.burst_loss > 0 && self.burst_length == 0 {
            return Err(FaultError::Missing { field: "burst_length", needed_by: "burst_loss" });
        }
        Ok(())
    }
}

/// What a [`super::Faulty`] driver does to its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FaultConfig {
    /// Decides every draw; the two directions draw from streams of their own.
    pub seed: u64,
    /// For packets that arrive.
    pub receive: Faults,
    /// For packets that are sent.
    pub transmit: Faults,
}

impl FaultConfig {
    /// Checks both directions.
    ///
    /// # Errors
    ///
    /// As [`Faults::validate`].
    pub fn validate(&self) -> Result<(), FaultError> {
        self.receive.validate()?;
        self.transmit.validate()
    }
}

/// Why a [`FaultConfig`] makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A probability is above one.
    #[error("{field} is {value} parts per million; the most is {PER_MILLION}")]
    MoreThanCertain {
        /// Name of the field in [`Faults`].
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A field is 0 that another one needs.
    #[error("{field} must be at least 1 if {needed_by} is above 0")]
    Missing {
        /// Name of the field in [`Faults`].
        field: &'static str,
        /// Name of the field that needs it.
        needed_by: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_without_sense_is_refused_by_name() {
        let check = |faults: Faults| faults.validate().unwrap_err().to_string();
        assert_eq!(
            check(Faults { corruption: PER_MILLION + 1, ..Faults::none() }),
            "corruption is 1000001 parts per million; the most is 1000000"
        );
        assert_eq!(
            check(Faults { reordering: 1, ..Faults::none() }),
            "hold must be at least 1 if reordering is above 0"
        );
        assert_eq!(
            check(Faults { burst_loss: 1, ..Faults::none() }),
            "burst_length must be at least 1 if burst_loss is above 0"
        );
        assert_eq!(Faults { loss: PER_MILLION, ..Faults::none() }.validate(), Ok(()));
    }
}
