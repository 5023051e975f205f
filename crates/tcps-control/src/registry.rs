//! What there is, by name: one line a member.

use std::fmt;

use serde_json::Value;
use tcps_core::{
    hook::Hook,
    model::Predictor,
    param::{self, Draws, Entry, Fault, Make, Params as _},
    robot::Robot,
};

use crate::{hooks::*, predictors as members, robots, sampling::*};

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
        fault: Fault,
    },
}

impl ControlError {
    /// The parameter that is to blame, if one is.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Params { fault, .. } => Some(fault.clone()),
            Self::Unknown { .. } => None,
        }
    }

    /// A fault of the parameter `key`, which named it.
    pub(crate) fn within(self, key: &str) -> Fault {
        match self {
            Self::Params { fault, .. } => fault.within(key),
            Self::Unknown { what, name } => Fault::new(key, format!("{name:?}"), known(what).join(", ")),
        }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { what, name } => {
                write!(f, "no built-in {what} '{name}'; allowed: {}", known(what).join(", "))
            }
            Self::Params { name, fault } => write!(f, "parameters of '{name}': {fault}"),
        }
    }
}

impl std::error::Error for ControlError {}

fn known(what: &str) -> Vec<&'static str> {
    let (hooks, robots) = names();
    match what {
        "hook" => hooks,
        "robot" => robots,
        _ => predictors().collect(),
    }
}

/// Number and name of a member, its type, its parameters if it has any, and what it is.
macro_rules! entries {
    ($kind:ty, $($id:literal $name:literal $member:ty $([$params:ty])?, $doc:literal;)+) => {
        &[$(&Entry {
            id: $id,
            name: $name,
            doc: $doc,
            params: &[$(<$params>::TABLE)?],
            draws: Draws::No,
            make: |params| Ok(Box::new(<$member>::new(params)?) as Box<$kind>),
        }),+]
    };
}

const HOOKS: &[&Entry<Make<dyn Hook>>] = entries!(dyn Hook,
    0 "aim" aim::Aim [aim::Params], "kinematics: a simulated operator, who traces a circle on a surface by the returned pictures; gives the wanted x, y, z (m) and the angle done so far (rad)";
    1 "arm3" arm3::Arm3 [arm3::Params], "inverse kinematics: turns a position into the three joint angles of the robot arm, by damped least squares";
    2 "arm5" arm5::Arm5 [arm5::Params], "inverse kinematics: turns a pose (x, y, z, pitch, roll) into the five joint angles of the robot mujoco-arm, by damped least squares; passes further values unchanged";
    3 "arm5_pose" arm5::Arm5Pose, "kinematics: turns five joint angles into a pose; passes further values unchanged";
    4 "brightness" brightness::Brightness [brightness::Params], "decode: reads a value from the brightness of a picture";
    32 "compensator" compensator::Compensator [compensator::Params], "kinematics: a linear controller of the step experiment, by its transfer function or state space; computes a command at each sample from the returned value";
    5 "conceal" conceal::Conceal [conceal::Params], "predict: replaces a missing frame; the last picture stays, sound continues at its pitch and fades";
    6 "deadband" deadband::Deadband [deadband::Params], "code: sends a sample that differs by a share from the receiver's prediction, and one after a long silence";
    7 "dequantise16" quantise16::Dequantise16 [quantise16::Params], "decode: reads values of 16-bit fixed point";
    8 "environment" environment::EnvironmentHook [environment::Params], "predict: passes the received force on; during a gap it gives the force of a model that it learned";
    9 "force" force::Force [force::Params], "sense: selects some of the values that the robot senses";
    10 "glove" glove::Glove [glove::Params], "kinematics: turns two inertial sensors and two flex sensors into the pose of a tool and the opening of its gripper";
    11 "grey" brightness::Grey [brightness::Params], "code: writes a value as the brightness of a picture";
    12 "grip" grip::Grip [grip::Params], "kinematics: the hand of a simulated operator, which presses with a wanted force and corrects it by the returned force; gives x, y, z (m) and velocity (m/s) of the device";
    13 "hand" hand::Hand [hand::Params], "feedback: models the operator's hand as a mass with damper and spring, moved by the limited force";
    14 "imu_wrist" imu_wrist::ImuWrist [imu_wrist::Params], "kinematics: turns angular rates and specific force of a hand-held inertial sensor into position and velocity of the wrist";
    15 "leader" leader::LeaderHook [leader::Params], "kinematics: the operator's side of bilateral control; gives for each axis the message (4 values), position of the device (m), force (N) and energy (J)";
    16 "level_crossing" level_crossing::LevelCrossing [level_crossing::Params], "code: sends a sample if a value has crossed a level of a geometric grid";
    17 "limit" limit::Limit [limit::Params], "feedback: shortens a vector that is longer than allowed";
    18 "loudness" loudness::Loudness [loudness::Params], "decode: reads a value from the loudness of a tone";
    19 "mouse" mouse::Mouse [mouse::Params], "kinematics: turns pointer (x, y in pixels), left button and wheel counts into the pose of a tool and the value of the wheel's state";
    20 "mouse_xy" mouse_xy::MouseXy [mouse_xy::Params], "kinematics: turns a mouse into a wrist in front of the wall; its button pushes";
    21 "network_deadband" network_deadband::NetworkDeadband [network_deadband::Params], "code: sends a sample that differs by a share; the share grows with k, the samples that the transport puts into a packet";
    22 "pi" pi::PiHook [pi::Params], "kinematics: the controller of the step experiment; computes a command at each sample from the returned value";
    23 "pose" pose::Pose [pose::Params], "kinematics: selects, scales and shifts values";
    24 "preview" preview::Preview [preview::Params], "predict: the picture of a predictive display; during a gap it marks the last one, and shifts it or draws the tool at the commanded position";
    25 "quantise16" quantise16::Quantise16 [quantise16::Params], "code: writes values as 16-bit fixed point, in half the bytes";
    26 "supervisor" supervisor::SupervisorHook [supervisor::Params], "predict: keeps the follower safe; judges commands by age, loss, order and rate, and limits the motion";
    27 "tone" loudness::Tone [loudness::Params], "code: writes a value as the loudness of a tone with 16-bit samples";
    28 "uniform" uniform::Uniform [uniform::Params], "code: sends every n-th sample";
    29 "vibration" vibration::Vibration [vibration::Params], "feedback: drives motors with an eccentric mass by forces; gives frequency (Hz) and force amplitude (N) of each motor";
    30 "weber" weber::WeberSampler [weber::Params], "code: sends a sample that differs by a share from the last one sent (adaptive sampling)";
    31 "zoh" zoh::Zoh, "predict: repeats the last sample (zero-order hold)";
);

const PREDICTORS: &[&Entry<Make<dyn Predictor>>] = entries!(dyn Predictor,
    40 "ar" members::ar::Ar [members::ar::Params], "predict: autoregression, learned online by recursive least squares";
    41 "kalman_acceleration" members::kalman_acceleration::KalmanAcceleration [members::kalman::Params], "predict: Kalman filter, constant acceleration";
    42 "kalman_velocity" members::kalman_velocity::KalmanVelocity [members::kalman::Params], "predict: Kalman filter, constant velocity";
    43 "linear" members::linear::Linear [members::linear::Params], "predict: a line through the newest sample and the one `over` samples before it; the slope fades";
    44 "operator" members::operator::Operator [members::operator::Params], "predict: a model of the operator's hand, whose acceleration is short-lived and whose velocity decays";
    45 "zoh" members::zoh::Zoh, "predict: repeats the last sample (zero-order hold)";
);

const ROBOTS: &[&Entry<Make<dyn Robot>>] = entries!(dyn Robot,
    60 "arm" robots::arm::Arm [robots::arm::Params], "three joints with servos, before a wall";
    61 "follower" robots::follower::Follower [robots::follower::Params], "the robot's side of bilateral control";
    62 "step" robots::step::Step [robots::step::Params], "the plant of the step experiment";
    63 "wall_mass" robots::wall_mass::WallMass [robots::wall_mass::Params], "a mass on a line, before a wall";
);

/// The hooks with their parameters, as JSON; predictors also have those of a predictor's hook.
pub fn described_hooks() -> Value {
    let common = Entry {
        id: 0,
        name: "",
        doc: "",
        params: &[members::hook::Params::TABLE],
        draws: Draws::No,
        make: (),
    }
    .described();
    let predicting = |mut entry: Value| {
        let more = common["params"].as_array().into_iter().flatten().cloned();
        entry["params"].as_array_mut().into_iter().for_each(|own| own.extend(more.clone()));
        entry
    };
    let predictors = PREDICTORS.iter().filter(|p| HOOKS.iter().all(|h| h.name != p.name));
    HOOKS.iter().map(|h| h.described()).chain(predictors.map(|p| predicting(p.described()))).collect()
}

/// The robots with their parameters, as JSON.
pub fn described_robots() -> Value {
    param::described(ROBOTS)
}

/// Makes a built-in hook; every predictor is one.
pub fn hook(name: &str, params: &Value) -> Result<Box<dyn Hook>, ControlError> {
    if HOOKS.iter().any(|known| known.name == name) {
        return make(HOOKS, "hook", name, params);
    }
    let Some(predictor) = PREDICTORS.iter().find(|known| known.name == name) else {
        return Err(ControlError::Unknown { what: "hook", name: name.to_owned() });
    };
    match members::hook::Predict::new(params, predictor) {
        Ok(hook) => Ok(Box::new(hook)),
        Err(fault) => Err(ControlError::Params { name: name.to_owned(), fault }),
    }
}

/// A supervisor whose emergency agent has been made elsewhere, from what its parameters name.
pub fn supervised(params: &Value, agent: Box<dyn Hook>) -> Result<Box<dyn Hook>, ControlError> {
    match supervisor::SupervisorHook::led(params, agent) {
        Ok(hook) => Ok(Box::new(hook)),
        Err(fault) => Err(ControlError::Params { name: "supervisor".to_owned(), fault }),
    }
}

/// A robot `step` whose plant has been made elsewhere.
pub fn moved(params: &Value, plant: Box<dyn Hook>) -> Result<Box<dyn Robot>, ControlError> {
    match robots::step::Step::with(params, plant) {
        Ok(robot) => Ok(Box::new(robot)),
        Err(fault) => Err(ControlError::Params { name: "step".to_owned(), fault }),
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
    let mut hooks: Vec<_> = HOOKS.iter().map(|known| known.name).chain(predictors()).collect();
    hooks.sort_unstable();
    hooks.dedup();
    (hooks, ROBOTS.iter().map(|known| known.name).collect())
}

/// Names of the predictors.
pub fn predictors() -> impl Iterator<Item = &'static str> {
    PREDICTORS.iter().map(|known| known.name)
}

fn make<T: ?Sized>(
    members: &[&Entry<Make<T>>],
    what: &'static str,
    name: &str,
    params: &Value,
) -> Result<Box<T>, ControlError> {
    let Some(entry) = members.iter().find(|known| known.name == name) else {
        return Err(ControlError::Unknown { what, name: name.to_owned() });
    };
    let made = entry.complete(params).and_then(|params| (entry.make)(&params));
    made.map_err(|fault| ControlError::Params { name: name.to_owned(), fault })
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
            let Err(ControlError::Params { fault, .. }) = hook(name, &json!({"colour": 1})) else {
                panic!("{name} takes any key");
            };
            assert_eq!(fault.key, "colour");
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
