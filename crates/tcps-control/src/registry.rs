//! What there is, by name: one line a member.

use std::fmt;

use serde_json::Value;
use tcps_core::{hook::Hook, model::Predictor, robot::Robot};

use crate::{hooks, predictors as members, robots, sampling};

/// Why there is no such hook, robot or predictor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlError {
    /// The name is not known.
    Unknown {
        /// `hook`, `robot` or `predictor`.
        what: &'static str,
        /// The name asked for.
        name: String,
    },
    /// The parameters do not fit.
    Params {
        /// The name asked for.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { what, name } => {
                let (hooks, robots) = names();
                let known = match *what {
                    "hook" => hooks,
                    "robot" => robots,
                    _ => predictors().collect(),
                };
                write!(f, "no built-in {what} '{name}'; allowed: {}", known.join(", "))
            }
            Self::Params { name, reason } => write!(f, "parameters of '{name}': {reason}"),
        }
    }
}

impl std::error::Error for ControlError {}

/// Makes a member from its parameters.
pub type Make<T> = fn(&Value) -> Result<Box<T>, String>;

macro_rules! boxed {
    ($kind:ty, $($name:literal => $member:ty),+ $(,)?) => {
        &[$(($name, |params| Ok(Box::new(<$member>::new(params)?) as Box<$kind>))),+]
    };
}

const HOOKS: &[(&str, Make<dyn Hook>)] = boxed!(dyn Hook,
    "aim" => hooks::aim::Aim,
    "arm3" => hooks::arm3::Arm3,
    "arm5" => hooks::arm5::Arm5,
    "arm5_pose" => hooks::arm5::Arm5Pose,
    "brightness" => hooks::brightness::Brightness,
    "conceal" => hooks::conceal::Conceal,
    "deadband" => sampling::deadband::Deadband,
    "dequantise16" => hooks::quantise16::Dequantise16,
    "environment" => hooks::environment::EnvironmentHook,
    "force" => hooks::force::Force,
    "glove" => hooks::glove::Glove,
    "grey" => hooks::brightness::Grey,
    "grip" => hooks::grip::Grip,
    "hand" => hooks::hand::Hand,
    "imu_wrist" => hooks::imu_wrist::ImuWrist,
    "leader" => hooks::leader::LeaderHook,
    "level_crossing" => sampling::level_crossing::LevelCrossing,
    "limit" => hooks::limit::Limit,
    "loudness" => hooks::loudness::Loudness,
    "mouse" => hooks::mouse::Mouse,
    "mouse_xy" => hooks::mouse_xy::MouseXy,
    "network_deadband" => sampling::network_deadband::NetworkDeadband,
    "pi" => hooks::pi::PiHook,
    "pose" => hooks::pose::Pose,
    "preview" => hooks::preview::Preview,
    "quantise16" => hooks::quantise16::Quantise16,
    "supervisor" => hooks::supervisor::SupervisorHook,
    "tone" => hooks::loudness::Tone,
    "uniform" => sampling::uniform::Uniform,
    "vibration" => hooks::vibration::Vibration,
    "weber" => sampling::weber::WeberSampler,
    "zoh" => hooks::zoh::Zoh,
);

const PREDICTORS: &[(&str, Make<dyn Predictor>)] = boxed!(dyn Predictor,
    "ar" => members::ar::Ar,
    "kalman_acceleration" => members::kalman_acceleration::KalmanAcceleration,
    "kalman_velocity" => members::kalman_velocity::KalmanVelocity,
    "linear" => members::linear::Linear,
    "operator" => members::operator::Operator,
    "zoh" => members::zoh::Zoh,
);

const ROBOTS: &[(&str, Make<dyn Robot>)] = boxed!(dyn Robot,
    "arm" => robots::arm::Arm,
    "follower" => robots::follower::Follower,
    "step" => robots::step::Step,
    "wall_mass" => robots::wall_mass::WallMass,
);

/// Makes a built-in hook; every predictor is one.
pub fn hook(name: &str, params: &Value) -> Result<Box<dyn Hook>, ControlError> {
    if HOOKS.iter().any(|(known, _)| *known == name) {
        return make(HOOKS, "hook", name, params);
    }
    let Some((_, predictor)) = PREDICTORS.iter().find(|(known, _)| *known == name) else {
        return Err(ControlError::Unknown { what: "hook", name: name.to_owned() });
    };
    match members::hook::Predict::new(params, *predictor) {
        Ok(hook) => Ok(Box::new(hook)),
        Err(reason) => Err(ControlError::Params { name: name.to_owned(), reason }),
    }
}

/// A supervisor whose emergency agent has been made elsewhere, from what its parameters name.
pub fn supervised(params: &Value, agent: Box<dyn Hook>) -> Result<Box<dyn Hook>, ControlError> {
    match hooks::supervisor::SupervisorHook::led(params, agent) {
        Ok(hook) => Ok(Box::new(hook)),
        Err(reason) => Err(ControlError::Params { name: "supervisor".to_owned(), reason }),
    }
}

/// Makes a predictor.
pub fn predictor(name: &str, params: &Value) -> Result<Box<dyn Predictor>, ControlError> {
    make(PREDICTORS, "predictor", name, params)
}

/// Makes a built-in robot.
pub fn robot(name: &str, params: &Value) -> Result<Box<dyn Robot>, ControlError> {
    make(ROBOTS, "robot", name, params)
}

/// Names of the built-in hooks and of the built-in robots.
pub fn names() -> (Vec<&'static str>, Vec<&'static str>) {
    let mut hooks: Vec<_> = HOOKS.iter().map(|(name, _)| *name).chain(predictors()).collect();
    hooks.sort_unstable();
    hooks.dedup();
    (hooks, ROBOTS.iter().map(|(name, _)| *name).collect())
}

/// Names of the predictors.
pub fn predictors() -> impl Iterator<Item = &'static str> {
    PREDICTORS.iter().map(|(name, _)| *name)
}

fn make<T: ?Sized>(
    members: &[(&str, Make<T>)],
    what: &'static str,
    name: &str,
    params: &Value,
) -> Result<Box<T>, ControlError> {
    let Some((_, make)) = members.iter().find(|(known, _)| *known == name) else {
        return Err(ControlError::Unknown { what, name: name.to_owned() });
    };
    make(params).map_err(|reason| ControlError::Params { name: name.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_member_works_with_its_defaults_and_refuses_an_unknown_key() {
        let (hooks, robots) = names();
        for name in hooks {
            assert!(hook(name, &Value::Null).is_ok(), "{name}");
            let Err(ControlError::Params { reason, .. }) = hook(name, &json!({"colour": 1})) else {
                panic!("{name} takes any key");
            };
            assert!(reason.contains("colour"), "{reason}");
        }
        for name in predictors() {
            assert!(predictor(name, &Value::Null).is_ok(), "{name}");
            assert!(predictor(name, &json!({"colour": 1})).is_err(), "{name}");
        }
        for name in robots {
            assert!(robot(name, &json!({})).is_ok(), "{name}");
            assert!(robot(name, &json!({"colour": 1})).is_err(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_there_is() {
        let Err(error) = hook("zho", &Value::Null) else { panic!("there is no zho") };
        assert!(
            error.to_string().contains("allowed: aim, ar, arm3") && error.to_string().contains("zoh"),
            "{error}"
        );
        assert!(robot("zoh", &Value::Null).is_err());
        let Err(error) = predictor("arm3", &Value::Null) else { panic!("arm3 predicts nothing") };
        assert!(error.to_string().contains("allowed: ar, kalman_acceleration"), "{error}");
    }
}
