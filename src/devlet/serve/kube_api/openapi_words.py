"""What fields mean, in our words, for the kinds that devlet is about: what `kubectl explain` prints.

Keys are message names without their version, since the versions of a group mean the same by the same name; the empty
field name stands for the message itself. Fields without words simply have no description."""

from collections.abc import Mapping

__all__ = ["words"]

_NOTHING: Mapping[str, str] = {}

_WORDS: dict[str, dict[str, str]] = {
    "resource.DeviceClass": {
        "": "A named choice of devices: what a claim asks for by name, and how such devices are configured.",
        "metadata": "Name, labels and what the server keeps about the object.",
        "spec": "Which devices belong to the class.",
    },
    "resource.DeviceClassSpec": {
        "selectors": "All of these must hold for a device to belong to the class.",
        "config": "Parameters for the driver, put before those of the claim.",
        "extendedResourceName": "Pods may ask for devices of the class under this resource name, without a claim.",
    },
    "resource.DeviceSelector": {
        "": "A condition on a device.",
        "cel": "The condition as an expression.",
    },
    "resource.CELDeviceSelector": {
        "expression": "A CEL expression over `device`, its driver, attributes and capacity. It yields true or false.",
    },
    "resource.ResourceSlice": {
        "": "Devices that a driver offers, as one part of a pool.",
        "metadata": "Name, labels and what the server keeps about the object.",
        "spec": "The devices, and from where they can be used.",
    },
    "resource.ResourceSliceSpec": {
        "driver": "The driver that published the slice and prepares its devices. It never changes.",
        "pool": "The pool that the slice is part of.",
        "nodeName": "The only node from which the devices can be used. It never changes.",
        "nodeSelector": "The nodes from which the devices can be used.",
        "allNodes": "True if the devices can be used from every node.",
        "perDeviceNodeSelection": "True if every device says itself from where it can be used.",
        "devices": "The devices, each with a name that is unique in the pool.",
        "sharedCounters": "Amounts that devices of the pool draw from, for hardware that can be cut up in many ways.",
    },
    "resource.ResourcePool": {
        "name": "The pool's name; for devices of one node usually that node's.",
        "generation": "Goes up by one whenever the pool changes. Slices of older generations do not count.",
        "resourceSliceCount": "How many slices of this generation there are. With fewer the pool is not complete.",
    },
    "resource.Device": {
        "": "One thing that can be allocated.",
        "name": "Unique in the pool; a DNS label.",
        "attributes": "Properties of the device, by name. A name without a domain belongs to the driver.",
        "capacity": "Amounts that the device has, by name.",
        "consumesCounters": "What using the device takes from the pool's shared counters.",
        "nodeName": "The only node from which the device can be used.",
        "nodeSelector": "The nodes from which the device can be used.",
        "allNodes": "True if the device can be used from every node.",
        "taints": "Reasons not to allocate the device, or not to go on using it.",
        "bindsToNode": "True if allocating the device ties the claim to the node that was chosen.",
        "bindingConditions": "Conditions that must become true before a pod with the device is bound.",
        "bindingFailureConditions": "Conditions any of which says that the device will not become ready.",
        "allowMultipleAllocations": "True if several claims may hold the device at the same time.",
        "basic": "The properties of the device.",
    },
    "resource.DeviceAttribute": {
        "": "A value of one of four types.",
        "bool": "Yes or no.",
        "int": "A whole number.",
        "string": "A text of at most 64 characters.",
        "version": "A version as semver.org defines it.",
    },
    "resource.DeviceTaint": {
        "": "Keeps claims without a matching toleration off a device.",
        "key": "The name of the taint.",
        "value": "More about it; may be empty.",
        "effect": "NoSchedule: no new allocation. NoExecute: pods that use it are deleted too. None: no effect.",
        "timeAdded": "When the taint was set; tolerations may end some time after.",
    },
    "resource.ResourceClaim": {
        "": "A wish for devices and, once it is granted, the devices.",
        "metadata": "Name, labels and what the server keeps about the object.",
        "spec": "What is wanted. It never changes.",
        "status": "What was allocated, who may use it, and what drivers report.",
    },
    "resource.ResourceClaimSpec": {
        "devices": "The devices that are wanted.",
    },
    "resource.DeviceClaim": {
        "requests": "One entry per kind of device; all must be met together.",
        "constraints": "What must hold across the devices of several requests.",
        "config": "Parameters for drivers.",
    },
    "resource.DeviceRequest": {
        "": "A wish for devices of one kind.",
        "name": "By which constraints, configuration and containers refer to the request.",
        "exactly": "The devices that are wanted, without alternatives.",
        "firstAvailable": "Alternatives, in order: the first that can be met is taken.",
        "deviceClassName": "The class that the devices belong to.",
        "selectors": "All of these must hold for a device, besides those of the class.",
        "allocationMode": "ExactCount for a number of devices, All for every matching device.",
        "count": "How many devices, with mode ExactCount.",
        "adminAccess": "True to look at devices that others use. Only in namespaces labelled for it.",
        "tolerations": "Taints that do not keep devices away from this request.",
        "capacity": "How much of each device is needed, for devices that are shared.",
    },
    "resource.ExactDeviceRequest": {
        "deviceClassName": "The class that the devices belong to.",
        "selectors": "All of these must hold for a device, besides those of the class.",
        "allocationMode": "ExactCount for a number of devices, All for every matching device.",
        "count": "How many devices, with mode ExactCount.",
        "adminAccess": "True to look at devices that others use. Only in namespaces labelled for it.",
        "tolerations": "Taints that do not keep devices away from this request.",
        "capacity": "How much of each device is needed, for devices that are shared.",
    },
    "resource.DeviceConstraint": {
        "requests": "The requests whose devices are compared; all of them if empty.",
        "matchAttribute": "All devices must have this attribute, with the same value.",
        "distinctAttribute": "All devices must have this attribute, each with another value.",
    },
    "resource.ResourceClaimStatus": {
        "allocation": "The devices that were chosen; absent while there are none.",
        "reservedFor": "Who may use the claim now. While somebody may, it is not given back.",
        "devices": "What drivers report about each device.",
    },
    "resource.AllocationResult": {
        "devices": "The devices and their parameters.",
        "nodeSelector": "The nodes from which all of the devices can be used; every node if absent.",
        "allocationTimestamp": "When the devices were chosen.",
    },
    "resource.DeviceRequestAllocationResult": {
        "": "One allocated device.",
        "request": "The request that it meets, with the alternative after a slash if there were some.",
        "driver": "The driver of the device.",
        "pool": "The pool of the device.",
        "device": "The name of the device in its pool.",
        "adminAccess": "True if the device is only looked at.",
        "shareID": "Tells the holders of a shared device apart.",
        "consumedCapacity": "How much of a shared device the claim holds.",
    },
    "resource.ResourceClaimConsumerReference": {
        "resource": "The plural of its kind, such as pods.",
        "name": "Its name, in the claim's namespace.",
        "uid": "Its identity: another object of the same name is not meant.",
    },
    "resource.AllocatedDeviceStatus": {
        "conditions": "What the driver says about the state of the device.",
        "data": "Anything else that the driver wants to tell.",
        "networkData": "Addresses, for devices that are network interfaces.",
    },
    "resource.ResourceClaimTemplate": {
        "": "From which a claim is made for each pod that refers to it.",
        "spec": "The claim to make. It never changes.",
    },
    "resource.DeviceTaintRule": {
        "": "Puts a taint on devices, without their driver.",
        "spec": "Which devices, and which taint.",
        "status": "How far the taint has taken effect.",
    },
    "resource.DeviceTaintRuleSpec": {
        "deviceSelector": "The devices: all conditions that are given must hold.",
        "taint": "The taint that they get.",
    },
    "resource.ResourcePoolStatusRequest": {
        "": "A question: how many devices do pools have, and how many are free? It is answered once, in its status.",
    },
    "core.Pod": {
        "": "Containers that run together on one node.",
        "metadata": "Name, labels and what the server keeps about the object.",
        "spec": "What is to run.",
        "status": "What has been seen of it.",
    },
    "core.PodSpec": {
        "resourceClaims": "The claims that the containers may refer to. They are met before the pod is bound.",
        "nodeName": "The node where the pod runs; empty until it is bound.",
        "schedulerName": "Who chooses the node.",
        "containers": "The containers; at least one.",
        "initContainers": "Containers that run one after the other before the others start.",
        "restartPolicy": "Whether containers that have ended are started again: Always, OnFailure or Never.",
    },
    "core.PodResourceClaim": {
        "": "A claim of a pod: one that exists, or one that is made from a template for this pod.",
        "name": "By which the containers refer to the entry.",
        "resourceClaimName": "A claim in the pod's namespace. Other pods may use it too.",
        "resourceClaimTemplateName": "A template in the pod's namespace; its claim lives as long as the pod.",
    },
    "core.PodStatus": {
        "phase": "Pending, Running, Succeeded, Failed or Unknown.",
        "resourceClaimStatuses": "The claims that were made from templates.",
    },
    "core.Container": {
        "name": "Unique in the pod; a DNS label.",
        "image": "Where the container's files come from.",
        "resources": "What the container needs, claims included.",
    },
    "core.ResourceRequirements": {
        "limits": "How much the container may use, by resource.",
        "requests": "How much the container needs, by resource.",
        "claims": "Which of the pod's claims the container gets; those that it does not name stay invisible to it.",
    },
    "core.ResourceClaim": {
        "": "A container's reference to a claim of its pod.",
        "name": "An entry of the pod's resourceClaims.",
        "request": "One request of the claim; without it the container gets the devices of all.",
    },
    "core.ConfigMap": {
        "": "Texts by name, for containers and programs.",
        "data": "Texts.",
        "binaryData": "Bytes.",
        "immutable": "True if the content can no longer change.",
    },
    "core.Node": {
        "": "A machine that runs pods.",
        "spec": "What is wanted of it.",
        "status": "What it reports.",
    },
    "core.NodeStatus": {
        "capacity": "What the node has, by resource.",
        "allocatable": "What of that pods can have.",
        "conditions": "The state of the node; Ready is the one that counts.",
    },
    "coordination.Lease": {
        "": "Says who does something at the moment, as long as it is renewed.",
        "spec": "Who has it, since when and for how long.",
    },
}


def words(message_name: str) -> Mapping[str, str]:
    """The descriptions of a message, as in `k8s.io.api.core.v1.Pod`, by field."""
    group, _, rest = message_name.removeprefix("k8s.io.api.").partition(".")
    return _WORDS.get(f"{group}.{rest.rpartition('.')[2]}", _NOTHING)
