//! The classes of titles by which admission tells them apart.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

/// How a title came to be watched (Simon et al., section 2.4). Titles that
/// nobody classed are [`TitleClass::Archived`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TitleClass {
    /// Class 1: stored long before, popular, such as a lesson of 45 minutes.
    #[default]
    Archived,
    /// Class 2: stored just before its first use, popular, such as a daily
    /// briefing of 5 to 20 minutes.
    FirstTime,
    /// Class 3: asked for on the spur of the moment.
    AdHoc,
}

impl TitleClass {
    /// All of them, in the order of their numbers in the paper.
    pub const ALL: [Self; 3] = [Self::Archived, Self::FirstTime, Self::AdHoc];

    /// The word in settings and manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::FirstTime => "first-time",
            Self::AdHoc => "ad-hoc",
        }
    }
}

impl fmt::Display for TitleClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TitleClass {
    type Err = TitleClassError;

    fn from_str(text: &str) -> Result<Self, TitleClassError> {
        Self::ALL.into_iter().find(|class| class.name() == text).ok_or(TitleClassError)
    }
}

/// The text names no class of titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a class of titles is archived, first-time or ad-hoc")]
pub struct TitleClassError;

/// One value for each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ByClass<T> {
    /// That of class 1.
    pub archived: T,
    /// That of class 2.
    pub first_time: T,
    /// That of class 3.
    pub ad_hoc: T,
}

impl<T> ByClass<T> {
    /// The values as a function of the class.
    pub fn of(mut value: impl FnMut(TitleClass) -> T) -> Self {
        Self {
            archived: value(TitleClass::Archived),
            first_time: value(TitleClass::FirstTime),
            ad_hoc: value(TitleClass::AdHoc),
        }
    }

    /// Each class with its value.
    pub fn iter(&self) -> impl Iterator<Item = (TitleClass, &T)> {
        TitleClass::ALL.into_iter().map(|class| (class, &self[class]))
    }
}

impl<T> Index<TitleClass> for ByClass<T> {
    type Output = T;

    fn index(&self, class: TitleClass) -> &T {
        match class {
            TitleClass::Archived => &self.archived,
            TitleClass::FirstTime => &self.first_time,
            TitleClass::AdHoc => &self.ad_hoc,
        }
    }
}

impl<T> IndexMut<TitleClass> for ByClass<T> {
    fn index_mut(&mut self, class: TitleClass) -> &mut T {
        match class {
            TitleClass::Archived => &mut self.archived,
            TitleClass::FirstTime => &mut self.first_time,
            TitleClass::AdHoc => &mut self.ad_hoc,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_written_as_it_is_read() {
        for class in TitleClass::ALL {
            assert_eq!(class.to_string().parse(), Ok(class));
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{class}\""));
        }
        assert_eq!("films".parse::<TitleClass>(), Err(TitleClassError));
        assert_eq!(TitleClass::default(), TitleClass::Archived);
    }

    #[test]
    fn each_class_has_a_value_of_its_own() {
        let mut values = ByClass::of(TitleClass::name);
        values[TitleClass::FirstTime] = "news";
        let all: Vec<_> = values.iter().map(|(_, value)| *value).collect();
        assert_eq!(all, ["archived", "news", "ad-hoc"]);
    }
}
