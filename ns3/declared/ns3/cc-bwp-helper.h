// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_CC_BWP_HELPER
#define TCPSBED_DECLARED_CC_BWP_HELPER

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ns3
{

struct BandwidthPartInfo
{
    enum Scenario
    {
        UMi_StreetCanyon_LoS
    };
};

using BandwidthPartInfoPtr = std::unique_ptr<BandwidthPartInfo>;
using BandwidthPartInfoPtrVector = std::vector<std::reference_wrapper<BandwidthPartInfoPtr>>;

struct ComponentCarrierInfo;

// Holds its carriers, so that it can be moved and not copied.
struct OperationBandInfo
{
    std::vector<std::unique_ptr<ComponentCarrierInfo>> m_cc;
    OperationBandInfo();
    OperationBandInfo(OperationBandInfo&&);
    OperationBandInfo& operator=(OperationBandInfo&&);
    ~OperationBandInfo();
};

class CcBwpCreator
{
  public:
    struct SimpleOperationBandConf
    {
        SimpleOperationBandConf(double centralFreq,
                                double channelBw,
                                uint8_t numCc,
                                BandwidthPartInfo::Scenario scenario);
    };

    OperationBandInfo CreateOperationBandContiguousCc(const SimpleOperationBandConf& conf);
    static BandwidthPartInfoPtrVector GetAllBwps(
        const std::vector<std::reference_wrapper<OperationBandInfo>>& operationBands);
};

} // namespace ns3

#endif
