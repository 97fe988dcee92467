//! Configuration of faults.

/// Probability 1. Probabilities are in parts per million, so that a configuration is exact and
/// equal on every machine.
pub const PER_MILLION: u32 = 1_000_000;

/// Faults of one direction.
///
/// Probabilities are per packet, in parts per million, and independent of each other. A packet goes
/// through loss, corruption, duplication and reordering in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Faults {
    /// Probability that a packet is lost.
    pub loss: u32,
    /// Probability that a packet is followed by a copy of itself.
    pub duplication: u32,
    /// Probability that a packet is delayed while [`Faults::hold`] later packets pass.
    pub reordering: u32,
    /// Number of packets that overtake a delayed packet; at least 1 if there is reordering. Fewer
    /// overtake it if fewer follow.
    pub hold: u32,
    /// Probability that one randomly chosen bit of a packet is flipped.
    pub corruption: u32,
    /// Probability that a packet is the first of [`Faults::burst_length`] consecutive packets that
    /// are lost, as when a queue overflows or a link fails over.
    pub burst_loss: u32,
    /// Length of a burst loss in packets; at least 1 if there is burst loss.
    pub burst_length: u32,
}

impl Faults {
    /// Returns the configuration without faults.
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

    /// Checks the limits in the fields' documentation.
    ///
    /// # Errors
    ///
    /// [`FaultError`] for the first field that is outside its limits.
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

/// Faults of a [`super::Faulty`] driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FaultConfig {
    /// Seed of all random draws; each direction has its own stream.
    pub seed: u64,
    /// Faults of received packets.
    pub receive: Faults,
    /// Faults of sent packets.
    pub transmit: Faults,
}

impl FaultConfig {
    /// Checks both directions.
    ///
    /// # Errors
    ///
    /// [`FaultError`], as for [`Faults::validate`].
    pub fn validate(&self) -> Result<(), FaultError> {
        self.receive.validate()?;
        self.transmit.validate()
    }
}

/// Why a [`FaultConfig`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A probability is above one.
    #[error("{field} is {value} parts per million, the maximum is {PER_MILLION}")]
    MoreThanCertain {
        /// Name of the field in [`Faults`].
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A field is 0 although another one requires it.
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
    fn an_invalid_configuration_is_rejected_by_field() {
        let check = |faults: Faults| faults.validate().unwrap_err().to_string();
        assert_eq!(
            check(Faults { corruption: PER_MILLION + 1, ..Faults::none() }),
            "corruption is 1000001 parts per million, the maximum is 1000000"
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
