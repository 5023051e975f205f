//! Code that a scenario names: built in, in a shared library, or in Python.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::time::Time;

/// Code named in a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodePlan {
    /// What kind of code it is.
    pub kind: CodeKind,
    /// Built-in name; path of a library; Python module (a name, or the path of a file).
    pub name: String,
    /// Function or class in it.
    #[serde(default)]
    pub symbol: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// Of a predictor: the time between the samples that it is to be given.
    pub interval_ns: Option<Time>,
}

impl CodePlan {
    /// The code that one string names, as in a scenario with its paths resolved: `zoh`, `/lib.so:function`,
    /// `module:name`.
    pub fn named(text: &str, params: Value) -> Self {
        let (place, symbol) = text.rsplit_once(':').unwrap_or((text, ""));
        let file = place.rsplit('/').next().unwrap_or_default();
        let library =
            [".so", ".dylib", ".dll"].iter().any(|end| file.ends_with(end)) || file.contains(".so.");
        let kind = match (text.contains(':'), library) {
            (false, _) => CodeKind::Builtin,
            (true, true) => CodeKind::Library,
            (true, false) => CodeKind::Python,
        };
        Self { kind, name: place.into(), symbol: symbol.into(), params, interval_ns: None }
    }

    /// The string that names it: `zoh`, `/lib.so:function`, `module:name`.
    pub fn label(&self) -> String {
        match self.symbol.as_str() {
            "" => self.name.clone(),
            symbol => format!("{}:{symbol}", self.name),
        }
    }
}

/// Kinds of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// A Rust file in the tree.
    Builtin,
    /// A C function in a shared library.
    Library,
    /// A function compiled by numba, or a plain Python class.
    Python,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_string_says_what_kind_of_code_it_is() {
        let kind = |text: &str| {
            let code = CodePlan::named(text, Value::Null);
            (code.kind, code.name, code.symbol)
        };
        assert_eq!(kind("zoh"), (CodeKind::Builtin, "zoh".into(), String::new()));
        assert_eq!(kind("/a/lib.so:hold"), (CodeKind::Library, "/a/lib.so".into(), "hold".into()));
        assert_eq!(kind("/a/lib.so.1.2:hold").0, CodeKind::Library);
        assert_eq!(kind("/a.so/zoh.py:Zoh"), (CodeKind::Python, "/a.so/zoh.py".into(), "Zoh".into()));
        assert_eq!(kind("module:Zoh").0, CodeKind::Python);
    }

    /// Errors name code by the string that the user wrote.
    #[test]
    fn a_label_is_the_string_that_names_the_code() {
        for text in ["zoh", "/a/lib.so:hold", "/a.so/zoh.py:Zoh", "module:Zoh"] {
            assert_eq!(CodePlan::named(text, Value::Null).label(), text);
        }
    }
}
