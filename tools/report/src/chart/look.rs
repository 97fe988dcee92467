//! Looks: how lines and bars of a chart differ.

/// The style of a line or a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Solid, for the subject.
    Plain,
    /// Thin and dashed, for a comparison.
    Faint,
    /// Thinner still and dotted, without points.
    Dotted,
}

impl Look {
    /// Returns the class, with a space before it.
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Faint => " faint",
            Self::Dotted => " dotted",
        }
    }
}

/// Returns the classes of something of that colour and look.
#[must_use]
pub fn class(colour: usize, look: Look) -> String {
    format!("c{colour}{}", look.class())
}

/// Class and name of each of these, in their order. What has a name several times (a median and its 99th
/// percentile, bars of several groups) looks in the legend as it does where it is plain.
pub(super) fn legend<'a>(
    drawn: impl Iterator<Item = (usize, Look, &'a str)>,
) -> Vec<(String, String)> {
    let mut entries: Vec<(usize, Look, &str)> = Vec::new();
    for each in drawn {
        match entries.iter_mut().find(|entry| entry.2 == each.2) {
            Some(entry) if each.1 == Look::Plain => *entry = each,
            Some(_) => {}
            None => entries.push(each),
        }
    }
    let entry = |(colour, look, name): (usize, Look, &str)| (class(colour, look), name.to_owned());
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_legend_once_and_as_it_is_plain() {
        let drawn = [(0, Look::Faint, "apus"), (1, Look::Dotted, "tcp"), (0, Look::Plain, "apus")];
        let entry = |class: &str, name: &str| (class.to_owned(), name.to_owned());
        let expected = [entry("c0", "apus"), entry("c1 dotted", "tcp")];
        assert_eq!(legend(drawn.into_iter()), expected);
    }
}
